// SPDX-License-Identifier: BSD-3-Clause
// Tests of the bootstrap contract itself: a sound bootstrap passes every case, and each seeded defect fails the case
// that is named for it, for the reason that is named.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "npushmem/testing/contract.hpp"
#include "tests/contract/bootstrap/bootstrap_case.hpp"
#include "tests/contract/case_process.hpp"
#include "tests/contract/mutants/bootstrap_star.hpp"

namespace npushmem::contract {
namespace {

BootstrapSubject star_subject(StarDefect defect) {
    BootstrapSubject subject;
    subject.name = "star";
    subject.open = [defect](const npushmem_host& host, const npushmem_bootstrap_params& params) {
        return StarBootstrap::open(defect, host, params);
    };
    subject.get_uniqueid = [defect](const npushmem_host&, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
        return StarBootstrap::get_uniqueid(defect, id);
    };
    return subject;
}

const BootstrapCase* find_bootstrap_case(const std::string& name) {
    const auto& all = all_bootstrap_cases();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const BootstrapCase& each) { return each.name == name; });
    return found == all.end() ? nullptr : &*found;
}

struct SeededDefect {
    const char* name;
    StarDefect defect;
    const char* failing_case;
    int ranks;
    const char* reason;  // part of the failure's text
};

void PrintTo(const SeededDefect& seeded, std::ostream* out) { *out << seeded.name; }

constexpr const char* hangs = "still ran after";

const SeededDefect seeded_defects[] = {
    {"ranks_in_wrong_order", StarDefect::ranks_in_wrong_order, "gathers_every_size", 3, "is wrong"},
    {"wrong_number_of_ranks", StarDefect::wrong_number_of_ranks, "the_numbers_of_own_ranks_are_used", 3, "nranks"},
    {"barrier_returns_early", StarDefect::barrier_returns_early, "nobody_leaves_before_all_have_entered", 3,
     "had not entered when rank"},
    {"abort_without_reason", StarDefect::abort_without_reason, "abort_wakes_who_waits_in_a_barrier", 3,
     "the cause is missing"},
    {"abort_not_reported", StarDefect::abort_not_reported, "check_reports_an_abort", 3, "has left the job"},
    {"long_reason_rejected", StarDefect::long_reason_rejected, "a_very_long_reason_arrives_in_part_or_whole", 2,
     "too long"},
    {"usable_after_abort", StarDefect::usable_after_abort, "calls_after_an_abort_fail", 1, "a barrier after abort"},
    {"check_waits", StarDefect::check_waits, "check_never_blocks", 3, hangs},
    {"check_sees_nothing", StarDefect::check_sees_nothing, "check_reports_an_abort", 2, hangs},
    {"descriptors_leak", StarDefect::descriptors_leak, "leaves_nothing_behind", 2, hangs},
    {"sizes_unchecked", StarDefect::sizes_unchecked, "different_sizes_fail_everywhere", 3, "outside the buffer"},
    {"sizes_truncated", StarDefect::sizes_truncated, "different_sizes_fail_everywhere", 3, "gave 24 bytes"},
    {"large_parts_truncated", StarDefect::large_parts_truncated, "gathers_every_size", 2, "of 65537 bytes"},
    {"in_place_unsupported", StarDefect::in_place_unsupported, "gathers_in_place", 2, "is wrong"},
    {"empty_gather_skipped", StarDefect::empty_gather_skipped, "gathers_nothing_repeatedly", 3, "rank 0 gave 0"},
    {"dead_rank_unnoticed", StarDefect::dead_rank_unnoticed, "the_last_rank_dies_between_calls", 2, hangs},
    {"open_without_limit", StarDefect::open_without_limit, "the_last_rank_dies_before_open", 2, hangs},
    {"late_ranks_rejected", StarDefect::late_ranks_rejected, "the_last_rank_comes_late", 2, "too long"},
    {"ids_repeat", StarDefect::ids_repeat, "makes_ids_that_differ", 1, "two ids are equal"},
    {"ids_unchecked", StarDefect::ids_unchecked, "ids_of_garbage_are_rejected", 2, "led to a job"},
    {"ids_ignored", StarDefect::ids_ignored, "two_jobs_at_once_do_not_mix", 5, "there is no place for rank"},
    {"numbers_unchecked", StarDefect::numbers_unchecked, "ranks_outside_the_job_are_refused", 1, "was accepted"},
    {"crashes_in_allgather", StarDefect::crashes_in_allgather, "gathers_every_size", 3, "SEGV"},
};

class BootstrapMutants : public ::testing::TestWithParam<SeededDefect> {};

TEST_P(BootstrapMutants, FailTheirCase) {
    const SeededDefect& seeded = GetParam();
    const BootstrapCase* const which = find_bootstrap_case(seeded.failing_case);
    ASSERT_NE(which, nullptr) << "there is no case " << seeded.failing_case;
    const bool never_ends = seeded.reason == std::string_view(hangs);
    const auto run = [&](StarDefect defect) {
        BootstrapSubject subject = star_subject(defect);
        subject.deadline = std::chrono::seconds(never_ends ? 10 : 60);
        if (defect == StarDefect::ids_ignored) subject.config["BOOTSTRAP_TIMEOUT"] = "10";  // of a rank in no job
        return run_bootstrap_case(subject, *which, seeded.ranks);
    };
    if (never_ends) {
        const CaseResult sound = run(StarDefect::none);
        ASSERT_EQ(sound.kind, CaseResult::Kind::passed) << "the machine is too slow for the limit: " << sound.text;
    }
    const CaseResult result = run(seeded.defect);
    EXPECT_EQ(result.kind, CaseResult::Kind::failed) << "the defect passes " << seeded.failing_case;
    EXPECT_NE(result.text.find(seeded.reason), std::string::npos)
        << "not for the expected reason, but: " << result.text;
}

std::string name_of_defect(const ::testing::TestParamInfo<SeededDefect>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Seeded, BootstrapMutants, ::testing::ValuesIn(seeded_defects), name_of_defect);

// The cases without a defect: tests "star/<n>_ranks.<case>".
[[maybe_unused]] const bool sound_star_added = (add_bootstrap_contract(star_subject(StarDefect::none)), true);

// How a case's end is attributed.

void exits_with_5(Rank& rank) {
    if (rank.number() == 1) std::_Exit(5);
}
void exits_successfully(Rank& rank) {
    if (rank.number() == 1) std::_Exit(0);
}
void fails_in_rank_2(Rank& rank) { EXPECT_NE(rank.number(), 2) << "seen in the report"; }
void skips_in_rank_1(Rank& rank) {
    if (rank.number() == 1) GTEST_SKIP() << "a stated reason";
}
void throws_in_rank_0(Rank& rank) {
    if (rank.number() == 0) throw std::runtime_error("thrown here");
}
void never_ends_in_rank_1(Rank& rank) {
    if (rank.number() == 1) rank.await_kill();
}
void kills_rank_1(Rank& rank) {
    if (rank.number() == 0) rank.kill(1);
    if (rank.number() == 1) rank.await_kill();
}
void is_not_killed(Rank& rank) {
    if (rank.number() == 1) rank.shared().expect_kill(1);
}
void fails_before_it_dies(Rank& rank) {
    EXPECT_NE(rank.number(), 1) << "seen although it dies";
    if (rank.number() == 1) die(rank);
}

void throws_a_number(Rank& rank) {
    if (rank.number() == 2) throw 7;
}

CaseResult run_body_of(void (*body)(Rank&)) {
    BootstrapSubject subject = star_subject(StarDefect::none);
    subject.deadline = std::chrono::seconds(body == never_ends_in_rank_1 ? 3 : 60);
    return run_bootstrap_case(subject, {"body", 1, few_ranks, CaseRanks::needs_own_ranks, body}, 3);
}

void expect_attributed(void (*body)(Rank&), CaseResult::Kind kind, const std::string& text, const std::string& absent) {
    const CaseResult result = run_body_of(body);
    EXPECT_EQ(result.kind, kind) << result.text;
    EXPECT_NE(result.text.find(text), std::string::npos) << result.text;
    if (!absent.empty()) {
        EXPECT_EQ(result.text.find(absent), std::string::npos) << result.text;
    }
}

TEST(BootstrapCaseRun, NamesTheRankThatExits) {
    expect_attributed(exits_with_5, CaseResult::Kind::failed, "rank 1 exited with status 5", "rank 0");
}
TEST(BootstrapCaseRun, NamesTheRankThatExitsInTheMiddle) {
    expect_attributed(exits_successfully, CaseResult::Kind::failed,
                      "rank 1 exited with status 0 before the case had finished", "rank 0");
}
TEST(BootstrapCaseRun, QuotesAFailedExpectation) {
    expect_attributed(fails_in_rank_2, CaseResult::Kind::failed, "seen in the report", "rank 1");
}
TEST(BootstrapCaseRun, ReportsASkipWithItsReason) {
    expect_attributed(skips_in_rank_1, CaseResult::Kind::skipped, "a stated reason", "");
}
TEST(BootstrapCaseRun, ReportsAnException) {
    expect_attributed(throws_in_rank_0, CaseResult::Kind::failed, "thrown here", "");
}
TEST(BootstrapCaseRun, ReportsAnExceptionOfAnyType) {
    expect_attributed(throws_a_number, CaseResult::Kind::failed, "no std::exception", "rank 1");
}
TEST(BootstrapCaseRun, NamesTheRankThatNeverEnds) {
    expect_attributed(never_ends_in_rank_1, CaseResult::Kind::failed, "rank 1 still ran after 3 s", "rank 0");
}
TEST(BootstrapCaseRun, AcceptsARankThatTheCaseKills) {
    expect_attributed(kills_rank_1, CaseResult::Kind::passed, "", "rank");
}
TEST(BootstrapCaseRun, ReportsARankThatShouldHaveBeenKilled) {
    expect_attributed(is_not_killed, CaseResult::Kind::failed, "before the case could kill it", "");
}
TEST(BootstrapCaseRun, KeepsTheFailureOfARankThatDies) {
    expect_attributed(fails_before_it_dies, CaseResult::Kind::failed, "seen although it dies", "");
}

TEST(ExactFilter, MatchesNamesWithCharactersOfFilters) {
    EXPECT_EQ(exact_filter("star/3_ranks.a_case"), "star/3_ranks.a_case");
    EXPECT_EQ(exact_filter("my-own:a*b?c/1_ranks.a_case"), "my?own?a?b?c/1_ranks.a_case");
}

TEST(DescribeEnd, NamesStatusAndSignal) {
    EXPECT_EQ(describe_end(3 << 8), "exited with status 3");
    EXPECT_EQ(describe_end(SIGKILL), "was killed by SIGKILL");
}

}  // namespace
}  // namespace npushmem::contract
