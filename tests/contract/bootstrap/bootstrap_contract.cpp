// SPDX-License-Identifier: BSD-3-Clause
// Registers the cases of the bootstrap contract, and runs them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/contract/bootstrap/bootstrap_case.hpp"
#include "tests/contract/case_rules.hpp"
#include "tests/contract/case_runner.hpp"

namespace npushmem::contract {
namespace {

constexpr std::array<int, 7> numbers_of_ranks{1, 2, 3, 5, 8, 16, 64};

// The parent kills a case's process later than that process kills its ranks, which can name the late ones.
constexpr std::chrono::seconds parent_grace{15};

std::string skip_reasons() {
    const auto& result = *::testing::UnitTest::GetInstance()->current_test_info()->result();
    std::string out;
    for (int i = 0; i < result.total_part_count(); ++i)
        if (result.GetTestPartResult(i).skipped()) out += result.GetTestPartResult(i).message();
    return out.empty() ? "for no stated reason" : out;
}

void run_body(const BootstrapCase& which, Rank& rank) {
    try {
        which.body(rank);
    } catch (const std::exception& thrown) {
        ADD_FAILURE() << "the case ended by an exception: " << thrown.what();
    } catch (...) {
        ADD_FAILURE() << "the case ended by an exception that is no std::exception";
    }
}

// In a forked rank. GoogleTest's results of the running test belong to this process: it copied them by the fork.
int run_in_rank(const BootstrapCase& which, Rank& rank) {
    run_body(which, rank);
    if (::testing::Test::HasFailure()) return 1;
    if (!::testing::Test::IsSkipped()) return rank_succeeded;
    rank.shared().set_skip_reason(skip_reasons());
    return rank_skipped;
}

void report_result(const CaseResult& result) {
    if (result.kind == CaseResult::Kind::failed) ADD_FAILURE() << result.text;
    if (result.kind == CaseResult::Kind::skipped) GTEST_SKIP() << result.text;
}

using SharedSubject = std::shared_ptr<const BootstrapSubject>;

std::string suite_of(const SharedSubject& subject, int ranks) {
    return subject->name + "/" + std::to_string(ranks) + "_ranks";
}

void register_forked_case(const SharedSubject& subject, const BootstrapCase& which, int ranks) {
    register_case({suite_of(subject, ranks), which.name, bootstrap_rule_of(which.name),
                   subject->deadline + parent_grace, [subject, &which, ranks] {
                       const auto output = prints_all_output() ? RankOutput::passed_on : RankOutput::captured;
                       report_result(run_bootstrap_case(*subject, which, ranks, output));
                   }});
}

class LaunchedBootstrapTest : public ::testing::Test {
public:
    LaunchedBootstrapTest(SharedSubject subject, const BootstrapCase& which, int ranks)
        : subject_(std::move(subject)), which_(which), ranks_(ranks) {}

    void TestBody() override {
        const std::string rule = bootstrap_rule_of(which_.name);
        if (is_listing()) {
            (void)std::printf("      %s\n", rule.c_str());
            return;
        }
        constexpr int without_line = -1;
        const ::testing::ScopedTrace process("pid", without_line, ::getpid());
        const ::testing::ScopedTrace trace("rule", without_line, rule);
        Rank rank(*subject_, ranks_);
        run_body(which_, rank);
    }

private:
    SharedSubject subject_;
    const BootstrapCase& which_;
    int ranks_;
};

void register_launched_case(const SharedSubject& subject, const BootstrapCase& which, int ranks) {
    ::testing::RegisterTest(
        suite_of(subject, ranks).c_str(), which.name, nullptr, nullptr, __FILE__, __LINE__,
        [subject, &which, ranks]() -> ::testing::Test* { return new LaunchedBootstrapTest(subject, which, ranks); });
}

bool fits(const BootstrapCase& which, int ranks) {
    return ranks >= which.min_ranks && std::min(ranks, many_ranks) <= which.max_ranks;
}

}  // namespace

const std::vector<BootstrapCase>& all_bootstrap_cases() {
    static const std::vector<BootstrapCase> cases = [] {
        std::vector<BootstrapCase> out;
        for (const auto& list : {bootstrap_gather_cases(), bootstrap_barrier_cases(), bootstrap_failure_cases(),
                                 bootstrap_death_cases(), bootstrap_life_cases(), bootstrap_id_cases()})
            out.insert(out.end(), list.begin(), list.end());
        return out;
    }();
    return cases;
}

CaseResult run_bootstrap_case(const BootstrapSubject& subject, const BootstrapCase& which, int ranks,
                              RankOutput output) {
    const RanksResult result =
        run_ranks(subject, ranks, subject.deadline, output, [&which](Rank& rank) { return run_in_rank(which, rank); });
    if (result.failed > 0) return {CaseResult::Kind::failed, result.report};
    if (!result.skipped.empty()) return {CaseResult::Kind::skipped, result.skipped};
    return {CaseResult::Kind::passed, {}};
}

void add_bootstrap_contract_of(const BootstrapSubject& subject, std::span<const int> numbers) {
    const auto shared = std::make_shared<const BootstrapSubject>(subject);
    for (const int ranks : numbers)
        for (const BootstrapCase& which : all_bootstrap_cases())
            if (fits(which, ranks) && ranks <= subject.max_ranks) register_forked_case(shared, which, ranks);
}

void add_bootstrap_contract(BootstrapSubject subject) { add_bootstrap_contract_of(subject, numbers_of_ranks); }

void add_bootstrap_contract_of_launched_rank(const BootstrapSubject& subject, int ranks) {
    const auto shared = std::make_shared<const BootstrapSubject>(subject);
    for (const BootstrapCase& which : all_bootstrap_cases())
        if (fits(which, ranks) && which.ranks == CaseRanks::any) register_launched_case(shared, which, ranks);
}

void die(Rank& rank) {
    if (::testing::Test::HasFailure()) std::exit(1);
    rank.die();
}

bool reports_missing_rank(Code code) {
    return code == Code::peer_dead || code == Code::timeout || code == Code::aborted;
}

void expect_missing_rank_reported(const Status& status, std::string_view during) {
    EXPECT_TRUE(reports_missing_rank(status.code())) << during << ": expected peer dead, timeout or aborted, not "
                                                     << name_of(status.code()) << ": " << status.message();
    EXPECT_FALSE(status.message().empty()) << during << ": a failure without a cause";
}

}  // namespace npushmem::contract
