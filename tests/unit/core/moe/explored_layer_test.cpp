// SPDX-License-Identifier: BSD-3-Clause
// One dispatch and one combine of a tiny layer under every schedule, for each mode, and mistakes in the combine that
// the exploration finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/core/moe/explored_layer.hpp"

namespace npushmem::moe::explored {
namespace {

using npu::CheckReport;
using npu::Hazard;

// Rows of each of 2 ranks, which have one expert each.
constexpr CaseShape one_row{2, 2, 1, 1, 1, 0};
constexpr CaseShape two_rows{2, 2, 1, 2, 1, 0};
constexpr CaseShape two_choices{2, 2, 2, 1, 1, 0};
constexpr CaseShape four_rows{2, 2, 2, 2, 1, 0};

void expect_all_schedules(const LayerCase& layer, std::uint64_t schedules) {
    ExploredLayer explored(layer);
    const CheckReport report = explored.run();
    EXPECT_TRUE(report.clean() && report.complete) << report.text();
    EXPECT_EQ(report.coverage, "all schedules");
    EXPECT_EQ(report.schedules, schedules) << report.text();
    EXPECT_EQ(report.redundant, 0U);
    EXPECT_EQ(explored.wrong(), "");
    EXPECT_EQ(explored.compared(), report.schedules);
}

// The rows and their signals order everything: all schedules differ only in steps that commute.
TEST(ExploredLayer, DirectModeNeedsOneSchedule) {
    for (const CopyRoute route : {CopyRoute::staged, CopyRoute::direct})
        for (const CaseShape& shape : {one_row, four_rows}) expect_all_schedules({.routing = shape, .route = route}, 1);
    expect_all_schedules({.routing = four_rows, .cores = 2}, 1);
    expect_all_schedules({.routing = four_rows, .cores = 4}, 1);
    expect_all_schedules({.routing = four_rows, .layers = 2}, 1);
}

// A rank may be one call ahead of the other one, in either direction.
TEST(ExploredLayer, CombinesInARowNeedOneScheduleForEachRankThatIsAhead) {
    expect_all_schedules({.routing = four_rows, .combines = 2}, 3);
}

// The acknowledgements let no rank run ahead.
TEST(ExploredLayer, RowsInPlace) {
    for (const CaseShape& shape : {one_row, four_rows})
        expect_all_schedules({.routing = shape, .route = CopyRoute::direct, .in_place = true}, 1);
    expect_all_schedules({.routing = four_rows, .route = CopyRoute::direct, .cores = 2, .in_place = true}, 1);
    expect_all_schedules({.routing = four_rows, .route = CopyRoute::direct, .combines = 3, .in_place = true}, 1);
    expect_all_schedules({.routing = four_rows, .route = CopyRoute::direct, .layers = 2, .in_place = true}, 1);
}

// A rank that does not offer its rows waits for no reader, so it may offer them in the next call while the other rank
// still reads the slots of this one.
TEST(ExploredLayer, RowsThatAreOfferedInSomeCalls) {
    for (const int cores : {1, 2})
        expect_all_schedules({.routing = four_rows,
                              .route = CopyRoute::direct,
                              .cores = cores,
                              .combines = 4,
                              .in_place = true,
                              .alternates = true},
                             2);
}

// The experts of a cached dispatch have new rows at the places of the first one.
TEST(ExploredLayer, CachedDispatches) {
    expect_all_schedules({.routing = four_rows, .layers = 2, .cached = true}, 1);
    expect_all_schedules({.routing = four_rows, .cores = 2, .layers = 2, .cached = true}, 1);
}

// Without counts to wait for, a rank may send the rows of the next call while the other one still works on these.
TEST(ExploredLayer, FixedSlotsNeedNoMoreSchedules) {
    for (const bool cached : {false, true}) {
        expect_all_schedules({.routing = one_row, .layers = 3, .fixed = true, .cached = cached}, 1);
        expect_all_schedules({.routing = four_rows, .cores = 2, .layers = 3, .fixed = true, .cached = cached}, 1);
    }
}

// The receiving end of each ring looks for rows before it waits for them: before or after they arrive.
TEST(ExploredLayer, ModeStreamNeedsTwoSchedulesForEachRing) {
    for (const RingPlace place : {RingPlace::receiver, RingPlace::sender}) {
        expect_all_schedules({.routing = one_row, .mode = CombineMode::stream, .place = place, .cores = 2}, 4);
        expect_all_schedules({.routing = four_rows, .mode = CombineMode::stream, .place = place, .cores = 2}, 8);
    }
}

TEST(ExploredLayer, ModeChunkedNeedsTwoSchedulesForEachRingAndChunk) {
    expect_all_schedules({.routing = four_rows, .mode = CombineMode::chunked, .cores = 2}, 32);
}

// The sending end looks for room as the receiving end looks for rows.
TEST(ExploredLayer, RingsOfOneRowNeedMoreSchedules) {
    for (const RingPlace place : {RingPlace::receiver, RingPlace::sender})
        expect_all_schedules(
            {.routing = two_rows, .mode = CombineMode::stream, .place = place, .ring_rows = 1, .cores = 2}, 32);
}

TEST(ExploredLayer, CombinesInARowUseTheRingsWithoutABarrier) {
    expect_all_schedules({.routing = two_choices, .mode = CombineMode::stream, .cores = 2, .combines = 2}, 160);
}

// Mistakes.

enum class Mistake { none, no_flag, signal_before_rows, waits_for_equality };

void put_rows(Core& core, const CombineSend& send, int destination) {
    for (std::int32_t expert = 0; expert < send.num_local_experts; ++expert) {
        const std::int32_t entry = expert * send.num_ranks + destination;
        const std::int32_t first = core.load(send.offset_table + entry);
        const std::int32_t end = first + core.load(send.length_table + entry);
        for (std::int32_t at = first; at < end; ++at) {
            const Bytes slot = send.layout.slot(send.epoch, core.load(send.slots + at));
            core.put(send.region + slot.value(), send.x + static_cast<std::uint64_t>(at) * row.value(), row.value(),
                     destination);
        }
    }
}

void send(Core& core, const CombineSend& send, Mistake mistake) {
    const auto signal = [&](int destination) {
        core.signal_set_on(own_signal(send, core.my_pe()), send.epoch, destination);
    };
    for (int i = 1; i <= send.num_ranks; ++i) {
        const int destination = (core.my_pe() + i) % send.num_ranks;
        if (mistake == Mistake::signal_before_rows) signal(destination);
        put_rows(core, send, destination);
        if (mistake != Mistake::no_flag) {
            core.set_flag<Pipe::copy_out, Pipe::scalar>(0);
            core.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
        }
        if (mistake != Mistake::signal_before_rows) signal(destination);
    }
}

// The direct mode again, in short.
void combine_with(Mistake mistake, Core& core, const CombineWork& work) {
    const CombineReceive& receive = work.stream.receive;
    send(core, work.stream.send, mistake);
    if (mistake != Mistake::waits_for_equality) return moe_combine_receiver(core, receive);
    for (int rank = 0; rank < receive.num_ranks; ++rank)
        core.signal_wait_until(own_signal(work.stream.send, rank), npu::Compare::equal, receive.epoch, rank);
    reduce_share(core, receive, {Tokens{0}, receive.tokens});
}

CheckReport run(Mistake mistake, const char* schedule) {
    ExploredLayer layer({.routing = four_rows, .combines = 2}, schedule);
    CheckReport report =
        layer.run([mistake](Core& core, const CombineWork& work) { combine_with(mistake, core, work); });
    EXPECT_TRUE(!report.clean() || layer.wrong().empty()) << layer.wrong();
    return report;
}

bool has(const CheckReport& report, Hazard hazard) {
    return std::ranges::any_of(report.findings, [&](const npu::Finding& finding) { return finding.hazard == hazard; });
}

TEST(ExploredMistakes, TheTwinWithoutOneIsClean) {
    const CheckReport report = run(Mistake::none, "explore");
    EXPECT_TRUE(report.clean() && report.complete) << report.text();
}

TEST(ExploredMistakes, ASignalThatNoFlagOrdersBehindTheRowsIsFound) {
    const CheckReport report = run(Mistake::no_flag, "explore");
    EXPECT_TRUE(has(report, Hazard::unpublished)) << report.text();
}

TEST(ExploredMistakes, ASignalBeforeTheRowsIsFound) {
    const CheckReport report = run(Mistake::signal_before_rows, "explore");
    EXPECT_TRUE(has(report, Hazard::dma_race)) << report.text();
}

TEST(ExploredMistakes, RowsThatChangeBeforeAllRanksHaveReadThemAreFound) {
    ExploredLayer layer({.routing = four_rows, .route = CopyRoute::direct, .combines = 2, .in_place = true});
    const CheckReport report = layer.run([](Core& core, const CombineWork& work) {
        CombineReceive receive = work.stream.receive;
        receive.in_place.offers_own_rows = false;  // so it waits for no acknowledgement
        moe_combine_direct_sender(core, work.stream.send);
        moe_combine_receiver(core, receive);
    });
    EXPECT_TRUE(has(report, Hazard::dma_race)) << report.text();
}

// Only schedules in which a rank begins its next call before the other one has seen the signal of this call.
TEST(ExploredMistakes, OnlyAnExplorationFindsAWaitForEqualityThatMissesItsValue) {
    EXPECT_TRUE(run(Mistake::waits_for_equality, "lazy").clean());
    const CheckReport report = run(Mistake::waits_for_equality, "explore");
    EXPECT_TRUE(has(report, Hazard::deadlock)) << report.text();
    EXPECT_THAT(report.schedule, testing::StartsWith("replay:"));
}

}  // namespace
}  // namespace npushmem::moe::explored
