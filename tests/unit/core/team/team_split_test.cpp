// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_split.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "core/memory/symmetric_heap.hpp"
#include "tests/unit/core/team/team_world.hpp"

namespace npushmem {
namespace {

// A pool in the memory of a PE, next to its table.
struct TeamSlotsTest : ::testing::Test {
    static constexpr std::uint64_t header_bytes = 4096;
    static constexpr int predefined = 2;

    TeamWorld world{1};
    std::vector<std::pair<std::uint64_t, std::uint64_t>> committed;
    TeamSlots slots{world.table(0).resources(),
                    control_bytes,
                    TeamTable::pool_bytes,
                    header_bytes,
                    predefined,
                    [this](std::uint64_t offset, std::uint64_t bytes) {
                        committed.emplace_back(offset, bytes);
                        return Status{};
                    }};
};

TEST(TeamSlots, TheRuntimesPoolHasRoomForAllTeamsOfLargeJobsOnSeveralHosts) {
    for (const int npes : {4, 16, 128, 1024})
        EXPECT_GE((TeamTable::pool_bytes - TeamFormation::bytes) / TeamLayout::bytes(npes, true),
                  static_cast<std::uint64_t>(max_teams))
            << npes << " PEs";
}

TEST_F(TeamSlotsTest, ThePredefinedOnesAreNotFree) {
    EXPECT_EQ(first_slots(slots.free(), 3), (std::vector<int>{2, 3, 4}));
    EXPECT_EQ(first_slots(slots.free(), 2 * max_teams).size(), static_cast<std::size_t>(slots.count() - predefined));
}

TEST_F(TeamSlotsTest, AClaimedSlotIsNotFreeUntilItsRelease) {
    EXPECT_TRUE(slots.claim(2));
    EXPECT_FALSE(slots.claim(2));
    TeamSlotSet free = slots.free();
    EXPECT_EQ(first_slots(free, 1), std::vector<int>{3});
    slots.release(2);
    intersect(free, slots.free());
    EXPECT_EQ(first_slots(free, 1), std::vector<int>{3}) << "the earlier set lacks slot 2";
    EXPECT_EQ(first_slots(slots.free(), 1), std::vector<int>{2});
}

TEST_F(TeamSlotsTest, CommitsEachUnitOnce) {
    ASSERT_TRUE(slots.commit_first(predefined).ok());
    for (int slot = 0; slot < slots.count(); ++slot) ASSERT_TRUE(slots.prepare(slot).ok());
    for (int slot = 0; slot < slots.count(); ++slot) ASSERT_TRUE(slots.prepare(slot).ok());
    std::uint64_t end = control_bytes;
    for (const auto& [offset, bytes] : committed) {
        EXPECT_EQ(offset, end);
        EXPECT_EQ(bytes % TeamSlots::commit_unit, 0U);
        end = offset + bytes;
    }
    EXPECT_GE(end, slots.layout(slots.count() - 1).ring());
    EXPECT_LE(end, control_bytes + TeamTable::pool_bytes);
}

TEST_F(TeamSlotsTest, ClearsAPreparedSlot) {
    std::byte* const state = world.table(0).resources().own_slice + slots.layout(5).barrier_state();
    *state = std::byte{1};
    ASSERT_TRUE(slots.prepare(5).ok());
    EXPECT_EQ(*state, std::byte{0});
}

}  // namespace
}  // namespace npushmem
