// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/explore/dpor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/npu/check/explore/toy_program.hpp"

namespace npushmem::npu::check::explore {
namespace {

using toy::explore;
using toy::Program;
using Kind = toy::Operation::Kind;

Program repeated(std::size_t threads, const toy::Thread& thread) { return Program(threads, thread); }

TEST(DporCounts, IndependentWritersNeedOneSchedule) {
    Program program;
    for (std::size_t i = 0; i < 3; ++i) program.push_back({{Kind::write, i, 1}, {Kind::write, i, 2}});
    EXPECT_EQ(explore(program).runs, 1U);
}

TEST(DporCounts, ConflictingWritersNeedOneSchedulePerOrder) {
    std::uint64_t factorial = 1;
    for (std::size_t n = 1; n <= 5; ++n) {
        factorial *= n;
        const toy::Explored found = explore(repeated(n, {{Kind::write, 0, 1}}));
        EXPECT_EQ(found.runs - found.redundant, factorial) << n;
    }
}

TEST(DporCounts, ReadersOfOneWriterNeedOneSchedulePerSubset) {
    for (std::size_t readers = 1; readers <= 5; ++readers) {
        Program program = repeated(readers, {{Kind::read, 0, 0}});
        program.push_back({{Kind::write, 0, 1}});
        const toy::Explored found = explore(program);
        EXPECT_EQ(found.runs - found.redundant, std::uint64_t{1} << readers);
    }
}

TEST(DporCounts, AWaitForItsOnlyWriterNeedsOneSchedule) {
    Program program = repeated(4, {{Kind::await, 0, 1}, {Kind::await, 1, 1}});
    program.push_back({{Kind::write, 0, 1}, {Kind::write, 1, 1}});
    EXPECT_EQ(explore(program).runs, 1U);
}

TEST(DporCounts, AWaitThatALaterWriteMayOvertakeNeedsTwo) {
    const Program program{{{Kind::await, 0, 1}}, {{Kind::write, 0, 1}, {Kind::write, 0, 2}}};
    EXPECT_EQ(explore(program).runs, 2U);
}

// The wait is enabled between two writes of which the default schedule runs both first: the wait never ends there.
TEST(DporWaits, AMissedValueIsFoundFromTheRunInWhichTheWaitNeverEnds) {
    const Program program{{{Kind::write, 0, 1}, {Kind::write, 0, 2}, {Kind::write, 0, 3}}, {{Kind::await_equal, 0, 1}}};
    EXPECT_EQ(explore(program).ends, toy::all_ends(program));
    EXPECT_EQ(explore(program).ends.size(), 2U);
}

void expect_same_ends(const std::vector<Kind>& kinds, std::uint64_t programs) {
    for (std::uint64_t seed = 1; seed <= programs; ++seed) {
        const Program program = toy::draw_program(seed, kinds);
        ASSERT_EQ(explore(program).ends, toy::all_ends(program)) << "seed " << seed << "\n" << toy::text_of(program);
    }
}

TEST(DporSoundness, ReachesEveryEndOfDrawnPrograms) {
    expect_same_ends({Kind::write, Kind::read, Kind::add, Kind::store, Kind::skip_if}, 400);
}

TEST(DporSoundness, ReachesEveryEndOfDrawnProgramsThatWait) {
    expect_same_ends({Kind::write, Kind::read, Kind::add, Kind::await, Kind::await_equal}, 600);
    expect_same_ends({Kind::write, Kind::store, Kind::skip_if, Kind::read, Kind::await_equal}, 600);
}

TEST(DporSoundness, ReachesEveryEndOfDrawnProgramsThatPoll) {
    expect_same_ends({Kind::write, Kind::read, Kind::add, Kind::poll}, 600);
    expect_same_ends({Kind::write, Kind::store, Kind::skip_if, Kind::read, Kind::poll, Kind::await}, 600);
}

TEST(DporSoundness, ReachesEveryEndOfDrawnProgramsThatGiveUp) {
    expect_same_ends({Kind::write, Kind::read, Kind::add, Kind::attempt}, 200);
    expect_same_ends({Kind::write, Kind::store, Kind::skip_if, Kind::read, Kind::attempt, Kind::await}, 400);
    expect_same_ends({Kind::write, Kind::add, Kind::skip_if, Kind::await_briefly, Kind::attempt}, 300);
    expect_same_ends({Kind::write, Kind::store, Kind::read, Kind::await_briefly, Kind::await_equal, Kind::poll}, 600);
}

Step step_with(std::uint64_t begin, std::uint64_t end) { return {{{begin, end, true}}, {}, {}}; }

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PlacesByMemory, FindsPlacesInTheSameLines) {
    PlacesByMemory places;
    places.add(0, step_with(0, 8));
    places.add(1, step_with(64, 200));
    places.add(2, step_with(56, 72));
    EXPECT_THAT(places.find(3, step_with(0, 8)), ElementsAre(2, 0));
    EXPECT_THAT(places.find(2, step_with(0, 8)), ElementsAre(0));
    EXPECT_THAT(places.find(3, step_with(0, 65)), ElementsAre(2, 1, 0));
    EXPECT_THAT(places.find(3, {{}, {}, {192, [](std::uint64_t) { return true; }}}), ElementsAre(1));
    EXPECT_THAT(places.find(3, step_with(256, 264)), IsEmpty());
}

TEST(PlacesByMemory, ALongAccessIsNearEveryStep) {
    PlacesByMemory places;
    places.add(0, step_with(0, 8));
    places.add(1, step_with(1 << 20, 1 << 22));
    EXPECT_THAT(places.find(2, step_with(0, 8)), ElementsAre(1, 0));
    EXPECT_THAT(places.find(2, step_with(1 << 24, 1 << 26)), ElementsAre(1, 0));
}

TEST(PlacesByMemory, ForgetsPlacesOfAnEarlierRun) {
    PlacesByMemory places;
    for (const std::size_t place : {0, 1, 2, 1}) places.add(place, step_with(0, 8));
    EXPECT_THAT(places.find(4, step_with(0, 8)), ElementsAre(1, 0));
}

// Without this, a program that reads the clock would pass as explored.
TEST(Dpor, ReportsAProgramThatChangesBetweenRuns) {
    Dpor dpor;
    ASSERT_TRUE(dpor.next_run());
    const Program first = repeated(2, {{Kind::write, 0, 1}});
    toy::run(first, dpor);
    ASSERT_TRUE(dpor.next_run());
    toy::run({{{Kind::write, 0, 1}}, {}}, dpor);
    EXPECT_TRUE(dpor.diverged());
    EXPECT_FALSE(dpor.next_run());
}

// The thread that ran there before is enabled, but another one is, too.
TEST(DporDivergence, IsNoticedWhereOtherThreadsAreEnabled) {
    const auto writes = [](std::uint64_t word) { return Step{{{word, word + 8, true}}, {}, {}}; };
    Dpor dpor;
    ASSERT_TRUE(dpor.next_run());
    EXPECT_EQ(dpor.choose({0, 1}, -1), 0);
    dpor.executed(writes(0));
    EXPECT_EQ(dpor.choose({1}, 0), 1);
    dpor.executed(writes(0));
    dpor.end_run({});
    ASSERT_TRUE(dpor.next_run());
    dpor.choose({0, 1, 2}, -1);
    EXPECT_TRUE(dpor.diverged());
    EXPECT_FALSE(dpor.next_run());
}

}  // namespace
}  // namespace npushmem::npu::check::explore
