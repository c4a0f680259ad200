// SPDX-License-Identifier: BSD-3-Clause
// Hazards of synchronisation: core barriers, waits that nobody ends, barriers of PEs, symmetric allocation.
#include "tests/unit/core/npu/check/hazards.hpp"

namespace npushmem::npu {
namespace {

using test::expect_caught;
using test::expect_clean;
using test::Setup;
using test::two_cores;
using test::two_pes;
using testing::HasSubstr;

constexpr std::size_t state_words = sizeof(BarrierState) / sizeof(std::uint64_t);
static_assert(state_words <= 1024);

TEST(H17Deadlock, OfTwoPesThatWaitForEachOther) {
    expect_caught(Hazard::deadlock, "H17 ring", two_pes, [](Core& core, std::uint64_t* data) {
        core.signal_wait_until(data, Compare::equal, 1, 1 - core.my_pe());  // blame: H17 ring
        core.signal_set_on(data, 1, 1 - core.my_pe());
    });
    expect_clean(two_pes, [](Core& core, std::uint64_t* data) {
        core.signal_set_on(data, 1, 1 - core.my_pe());
        core.signal_wait_until(data, Compare::equal, 1, 1 - core.my_pe());
    });
}

TEST(H17Deadlock, OfAPollThatNobodyEnds) {
    for (const Schedule& schedule : test::schedules()) {
        const CheckReport report = test::check(two_pes, schedule, [](Core& core, std::uint64_t* data) {
            do core.dcci(data);
            while (core.load(data) == 0 && core.my_pe() == 0);
        });
        EXPECT_EQ(report.status.code(), Code::timeout) << report.text();
        EXPECT_THAT(report.text(), HasSubstr("PE 0 core 0 polls memory that nobody changes any more"));
    }
}

TEST(H17Deadlock, GraphReportsWaitersAwaitedWordsAndLastWriters) {
    const CheckReport report = test::check(two_pes, Schedule{}, [](Core& core, std::uint64_t* data) {
        if (core.my_pe() == 0) core.signal_set_on(data, 3, 1);                              // blame: H17 writer
        if (core.my_pe() == 1) core.signal_wait_until(data, Compare::greater_equal, 4, 0);  // blame: H17 graph
    });
    EXPECT_EQ(report.status.code(), Code::timeout);
    const std::string text = report.text();
    EXPECT_THAT(text, HasSubstr("PE 1 core 0 waits from PE 0 at "));
    EXPECT_THAT(text, HasSubstr("_test.cpp:" + std::to_string(test::line_of("H17 graph")) + " for >= 4 in symmetric"));
    EXPECT_THAT(text, HasSubstr("+ 0 of PE 1, which is 3, last written by PE 0 core 0 with signal_set at "));
    EXPECT_THAT(text, HasSubstr("_test.cpp:" + std::to_string(test::line_of("H17 writer"))));
}

TEST(H23CoreBarrier, ReachedBySomeCoresOnly) {
    expect_caught(Hazard::core_barrier, "H23 some", two_cores, [](Core& core, std::uint64_t*) {
        if (core.index() == 0) core.core_barrier();  // blame: H23 some
    });
    expect_clean(two_cores, [](Core& core, std::uint64_t*) { core.core_barrier(); });
}

TEST(H23CoreBarrier, NotReachedAtDifferentPlaces) {
    expect_clean(two_cores, [](Core& core, std::uint64_t*) {
        if (core.index() == 0) core.core_barrier();
        if (core.index() == 1) core.core_barrier();
    });
}

TEST(H24TeamMismatch, OfTheTeam) {
    expect_caught(Hazard::team_mismatch, "H24 team", two_pes, [](Core& core, std::uint64_t* data) {
        const TeamView team{0, 1, core.my_pe() + 1};
        sync_v3(core, team, reinterpret_cast<BarrierState*>(data));  // blame: H24 team
    });
    expect_clean(two_pes, [](Core& core, std::uint64_t* data) {
        sync_v3(core, {0, 1, 2}, reinterpret_cast<BarrierState*>(data));
    });
}

TEST(H24TeamMismatch, OfTheLaunchSize) {
    for (const bool equal : {true, false}) {
        const auto job = CheckedJob::create({.pes = 2}).value();
        auto* state = job->allocate<BarrierState>(1);
        const CheckReport report = job->run(
            1, [&](int pe) { return equal ? 1 : 1 + pe; },
            [&](Core& core) {
                barrier_v3(core, {0, 1, 2}, job->at(core.my_pe(), state));
            });
        EXPECT_EQ(report.clean(), equal) << report.text();
        if (equal) continue;
        EXPECT_EQ(report.findings.at(0).hazard, Hazard::team_mismatch) << report.text();
        EXPECT_THAT(report.text(), HasSubstr("on 2 cores"));
    }
}

// PE 1's state was not zeroed when the team's index was used again.
void reuse(Core& core, std::uint64_t* data, std::uint64_t left_behind) {
    auto* state = reinterpret_cast<BarrierState*>(data);
    if (core.my_pe() == 1) core.signal_set(&state->generation.word, left_behind);
    if (core.my_pe() == 1) core.signal_set(&state->arrival.word, left_behind);
    sync_v3(core, {0, 1, 2}, state);  // blame: H25 reuse
}

TEST(H25Generation, LeadsByMoreThanTheProtocolAllows) {
    for (const Schedule& schedule : test::schedules()) {
        const CheckReport report =
            test::check(two_pes, schedule, [](Core& core, std::uint64_t* data) { reuse(core, data, 5); });
        const bool found = std::ranges::any_of(report.findings, [](const Finding& finding) {
            return test::blames(finding, Hazard::generation, test::line_of("H25 reuse"));
        });
        const bool stuck = std::ranges::any_of(
            report.findings, [](const Finding& finding) { return finding.hazard == Hazard::deadlock; });
        EXPECT_TRUE(found && stuck) << report.text();
    }
    expect_clean(two_pes, [](Core& core, std::uint64_t* data) { reuse(core, data, 0); });
}

TEST(H27AsymmetricHeap, SizesAndMissingAllocations) {
    const auto run = [](std::size_t on_1, bool second) {
        const auto job = CheckedJob::create({.pes = 2}).value();
        job->allocate_on(0, 64);
        job->allocate_on(1, on_1);            // blame: H27 sizes
        if (second) job->allocate_on(0, 64);  // blame: H27 missing
        return job->run(1, [](Core&) {});
    };
    EXPECT_TRUE(run(64, false).clean());
    for (const auto& [report, mark] : {std::pair{run(128, false), "H27 sizes"}, {run(64, true), "H27 missing"}}) {
        ASSERT_EQ(report.findings.size(), 1U) << report.text();
        EXPECT_TRUE(test::blames(report.findings[0], Hazard::asymmetric_heap, test::line_of(mark))) << report.text();
    }
}

}  // namespace
}  // namespace npushmem::npu
