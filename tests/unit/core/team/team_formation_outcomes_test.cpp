#include "core/team/team_formation_outcomes.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/unit/core/team/team_world.hpp"

namespace npushmem {
namespace {

// The boards of two PEs, beside those of their tables.
class TeamFormationOutcomesTest : public ::testing::Test {
protected:
    static constexpr std::uint64_t table_offset = 1U << 20;

    TeamFormationOutcomesTest() {
        for (const int pe : {0, 1})
            std::memset(world.table(pe).resources().own_slice + table_offset, 0, TeamFormationOutcomes::bytes);
    }
    [[nodiscard]] std::optional<TeamFormationOutcomes::Words> seen(std::uint32_t number) const {
        const auto looked = there.find(0, number);
        EXPECT_TRUE(looked.ok());
        return looked.value();
    }

    TeamWorld world{2};
    TeamFormationOutcomes here{world.table(0).resources(), table_offset};
    TeamFormationOutcomes there{world.table(1).resources(), table_offset};
};

TEST_F(TeamFormationOutcomesTest, TellsWhatBecameOfAnId) {
    EXPECT_EQ(seen(3), std::nullopt);
    here.close(3, {1, 2, 3, 4, 5});
    EXPECT_EQ(seen(3), (TeamFormationOutcomes::Words{1, 2, 3, 4, 5}));
    EXPECT_EQ(seen(4), std::nullopt);
    EXPECT_EQ(there.find(1, 3).value(), std::nullopt) << "an id of another PE";
}

TEST_F(TeamFormationOutcomesTest, AnEntryServesAnotherIdLater) {
    here.close(3, {1});
    here.close(3 + TeamFormationOutcomes::entries, {2});
    EXPECT_EQ(seen(3), std::nullopt);
    EXPECT_EQ(seen(3 + TeamFormationOutcomes::entries)->front(), 2U);
}

TEST_F(TeamFormationOutcomesTest, KnowsWhichIdsWereMade) {
    EXPECT_FALSE(there.was_made(0, 1).value());
    here.publish_made(2);
    EXPECT_TRUE(there.was_made(0, 1).value());
    EXPECT_TRUE(there.was_made(0, 2).value());
    EXPECT_FALSE(there.was_made(0, 3).value());
    EXPECT_FALSE(there.was_made(0, 0).value());
    EXPECT_FALSE(there.was_made(1, 1).value());
}

// What is read is of the id that was asked for, or nothing; ids of one entry are closed in their order.
TEST_F(TeamFormationOutcomesTest, IsReadWholeWhileItIsWritten) {
    constexpr std::uint32_t rounds = 20000;
    const auto number_of = [](std::uint32_t round) {
        return 1 + round * static_cast<std::uint32_t>(TeamFormationOutcomes::entries);
    };
    std::atomic<std::uint32_t> next{0};  // relaxed: which one may be looked for
    std::thread writer([&] {
        for (std::uint32_t round = 0; round < rounds; ++round) {
            here.close(number_of(round), {round, round, round, round, round});
            next.store(round + 1, std::memory_order_relaxed);
        }
    });
    for (std::uint32_t round = 0; round < rounds; round = next.load(std::memory_order_relaxed))
        if (const auto words = seen(number_of(round))) {
            EXPECT_THAT(*words, ::testing::Each(round));
        }
    writer.join();
}

}  // namespace
}  // namespace npushmem
