// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "core/team/team_mailbox.hpp"
#include "tests/unit/core/team/team_world.hpp"

namespace npushmem {

namespace {

// The mailboxes of two PEs, next to those of their tables.
class TeamMailboxTest : public ::testing::Test {
protected:
    static constexpr std::uint64_t mailbox_offset = 1U << 20;

    explicit TeamMailboxTest(Duration timeout = std::chrono::seconds{60}) : world(2, timeout) {
        for (const int pe : {0, 1})
            std::memset(world.table(pe).resources().own_slice + mailbox_offset, 0, TeamMailbox::bytes);
    }

    static TeamMessage message(std::uint64_t id, std::uint32_t number, std::uint32_t words = 1) {
        TeamMessage made;
        made.id = id;
        made.number = number;
        for (std::uint32_t i = 0; i < words; ++i) made.add(1000 * number + i);
        return made;
    }

    TeamWorld world;
    TeamMailbox here{world.table(0).resources(), mailbox_offset};
    TeamMailbox there{world.table(1).resources(), mailbox_offset};
};

TEST_F(TeamMailboxTest, DeliversEveryWord) {
    there.expect(5);
    ASSERT_TRUE(here.send(1, message(5, 3, TeamMessage::max_words)).ok());
    const auto received = there.take(5);
    ASSERT_TRUE(received.has_value());
    EXPECT_EQ(received->number, 3U);
    ASSERT_EQ(received->count, TeamMessage::max_words);
    for (std::uint32_t i = 0; i < received->count; ++i) EXPECT_EQ(received->words[i], 3000 + i);
    EXPECT_FALSE(there.take(5).has_value());
}

TEST_F(TeamMailboxTest, KeepsMessagesByIdAndFindsThemByNumber) {
    there.expect(5);
    there.expect(6);
    for (const std::uint32_t number : {2U, 0U, 1U}) ASSERT_TRUE(here.send(1, message(5, number)).ok());
    ASSERT_TRUE(here.send(1, message(6, 9)).ok());
    for (const std::uint32_t number : {0U, 1U, 2U}) EXPECT_EQ(there.take(5, number)->words[0], 1000 * number);
    EXPECT_FALSE(there.take(5, 3).has_value());
    EXPECT_EQ(there.take(6)->number, 9U);
}

TEST_F(TeamMailboxTest, DropsUnexpectedMessages) {
    there.expect(5);
    there.forget(5);
    ASSERT_TRUE(here.send(1, message(5, 0)).ok());
    EXPECT_FALSE(there.take(5).has_value());
    there.expect(5);
    EXPECT_FALSE(there.take(5).has_value());
}

// It died between its claim and its message.
TEST_F(TeamMailboxTest, FreesTheSlotsOfADeadWriter) {
    const auto state_of = [this](int slot) {
        return std::atomic_ref<std::uint64_t>(
            *reinterpret_cast<std::uint64_t*>(world.table(1).resources().own_slice + mailbox_offset +
                                              static_cast<std::uint64_t>(slot) * TeamMailbox::slot_bytes));
    };
    for (int slot = 0; slot < TeamMailbox::slots; ++slot) state_of(slot).store(1);  // PE 0
    there.expect(5);
    EXPECT_EQ(state_of(0).load(), 1U) << "it lives";
    world.kill(0);
    EXPECT_FALSE(there.take(5).has_value());
    for (int slot = 0; slot < TeamMailbox::slots; ++slot) EXPECT_EQ(state_of(slot).load(), 0U);
}

// Many times more messages than the mailboxes hold, in both directions; each PE reads after it has written.
TEST_F(TeamMailboxTest, TwoPesThatWriteToEachOtherDoNotDeadlock) {
    constexpr std::uint32_t messages = 500;
    here.expect(5);
    there.expect(5);
    const auto write_and_read = [&](TeamMailbox& mailbox, int pe) {
        for (std::uint32_t number = 0; number < messages; ++number)
            ASSERT_TRUE(mailbox.send(pe, message(5, number)).ok());
        for (std::uint32_t number = 0; number < messages; ++number)
            while (!mailbox.take(5, number)) std::this_thread::yield();
    };
    const std::jthread other([&] { write_and_read(there, 0); });
    write_and_read(here, 1);
}

class TeamMailboxTimeout : public TeamMailboxTest {
protected:
    TeamMailboxTimeout() : TeamMailboxTest(std::chrono::milliseconds{20}) {}
};

TEST_F(TeamMailboxTimeout, SendTimesOutIfTheMailboxIsFull) {
    for (std::uint32_t i = 0; i < TeamMailbox::slots; ++i) ASSERT_TRUE(here.send(1, message(5, i)).ok());
    const Status sent = here.send(1, message(5, 8));
    EXPECT_EQ(sent.code(), Code::timeout);
    EXPECT_THAT(sent.message(), ::testing::HasSubstr("room for a message about a team from PE 1"));
    there.expect(5);
    EXPECT_TRUE(there.take(5).has_value());
    EXPECT_TRUE(here.send(1, message(5, 8)).ok());
}

// Data from another process is not trusted.
TEST_F(TeamMailboxTest, LimitsAnInvalidCount) {
    there.expect(5);
    TeamMessage wrong = message(5, 0);
    ASSERT_TRUE(here.send(1, wrong).ok());
    std::byte* const slot = world.table(1).resources().own_slice + mailbox_offset;
    const std::uint32_t count = 1U << 30;
    std::memcpy(slot + sizeof(std::uint64_t) + offsetof(TeamMessage, count), &count, sizeof count);
    EXPECT_EQ(there.take(5)->count, TeamMessage::max_words);
}

}  // namespace

namespace {

// The outcome tables of two PEs, next to those of their team tables.
class TeamFormationOutcomesTest : public ::testing::Test {
protected:
    static constexpr std::uint64_t table_offset = 1U << 20;

    TeamFormationOutcomesTest() {
        for (const int pe : {0, 1})
            std::memset(world.table(pe).resources().own_slice + table_offset, 0, TeamFormationOutcomes::bytes);
    }
    [[nodiscard]] std::optional<TeamFormationOutcomes::Words> outcome(std::uint32_t number) const {
        const auto found = there.find(0, number);
        EXPECT_TRUE(found.ok());
        return found.value();
    }

    TeamWorld world{2};
    TeamFormationOutcomes here{world.table(0).resources(), table_offset};
    TeamFormationOutcomes there{world.table(1).resources(), table_offset};
};

TEST_F(TeamFormationOutcomesTest, FindsTheOutcomeOfAnId) {
    EXPECT_EQ(outcome(3), std::nullopt);
    here.close(3, {1, 2, 3, 4, 5});
    EXPECT_EQ(outcome(3), (TeamFormationOutcomes::Words{1, 2, 3, 4, 5}));
    EXPECT_EQ(outcome(4), std::nullopt);
    EXPECT_EQ(there.find(1, 3).value(), std::nullopt) << "an id of another PE";
}

TEST_F(TeamFormationOutcomesTest, ReusesAnEntryForALaterId) {
    here.close(3, {1});
    here.close(3 + TeamFormationOutcomes::entries, {2});
    EXPECT_EQ(outcome(3), std::nullopt);
    EXPECT_EQ(outcome(3 + TeamFormationOutcomes::entries)->front(), 2U);
}

TEST_F(TeamFormationOutcomesTest, ReportsWhichIdsWereMade) {
    EXPECT_FALSE(there.was_made(0, 1).value());
    here.publish_made(2);
    EXPECT_TRUE(there.was_made(0, 1).value());
    EXPECT_TRUE(there.was_made(0, 2).value());
    EXPECT_FALSE(there.was_made(0, 3).value());
    EXPECT_FALSE(there.was_made(0, 0).value());
    EXPECT_FALSE(there.was_made(1, 1).value());
}

// A lookup returns the outcome of the requested id or nothing; ids that share an entry are closed in order.
TEST_F(TeamFormationOutcomesTest, IsReadConsistentlyDuringWrites) {
    constexpr std::uint32_t rounds = 20000;
    const auto number_of = [](std::uint32_t round) {
        return 1 + round * static_cast<std::uint32_t>(TeamFormationOutcomes::entries);
    };
    std::atomic<std::uint32_t> next{0};  // relaxed: which one to look for
    std::thread writer([&] {
        for (std::uint32_t round = 0; round < rounds; ++round) {
            here.close(number_of(round), {round, round, round, round, round});
            next.store(round + 1, std::memory_order_relaxed);
        }
    });
    for (std::uint32_t round = 0; round < rounds; round = next.load(std::memory_order_relaxed))
        if (const auto words = outcome(number_of(round))) {
            EXPECT_THAT(*words, ::testing::Each(round));
        }
    writer.join();
}

}  // namespace

}  // namespace npushmem
