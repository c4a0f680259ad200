#include "core/team/team_mailbox.hpp"

#include <gmock/gmock.h>

#include "tests/unit/core/team/team_world.hpp"

namespace npushmem {
namespace {

// The boxes of two PEs, beside those of their tables.
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

TEST_F(TeamMailboxTest, BringsEveryWord) {
    there.expect(5);
    ASSERT_TRUE(here.send(1, message(5, 3, TeamMessage::max_words)).ok());
    const auto come = there.take(5);
    ASSERT_TRUE(come.has_value());
    EXPECT_EQ(come->number, 3U);
    ASSERT_EQ(come->count, TeamMessage::max_words);
    for (std::uint32_t i = 0; i < come->count; ++i) EXPECT_EQ(come->words[i], 3000 + i);
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

TEST_F(TeamMailboxTest, DropsWhatNobodyExpects) {
    there.expect(5);
    there.forget(5);
    ASSERT_TRUE(here.send(1, message(5, 0)).ok());
    EXPECT_FALSE(there.take(5).has_value());
    there.expect(5);
    EXPECT_FALSE(there.take(5).has_value());
}

// Many times more than the boxes hold, both ways at a time; each reads when it has written.
TEST_F(TeamMailboxTest, TwoWhoWriteToEachOtherDoNotWaitForEachOther) {
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

TEST_F(TeamMailboxTimeout, AFullMailboxIsWaitedForUntilTheDeadline) {
    for (std::uint32_t i = 0; i < TeamMailbox::slots; ++i) ASSERT_TRUE(here.send(1, message(5, i)).ok());
    const Status sent = here.send(1, message(5, 8));
    EXPECT_EQ(sent.code(), Code::timeout);
    EXPECT_THAT(sent.message(), ::testing::HasSubstr("room for a message about a team from PE 1"));
    there.expect(5);
    EXPECT_TRUE(there.take(5).has_value());
    EXPECT_TRUE(here.send(1, message(5, 8)).ok());
}

// What another process has written is not trusted.
TEST_F(TeamMailboxTest, AWrongCountIsCut) {
    there.expect(5);
    TeamMessage wrong = message(5, 0);
    ASSERT_TRUE(here.send(1, wrong).ok());
    std::byte* const slot = world.table(1).resources().own_slice + mailbox_offset;
    const std::uint32_t count = 1U << 30;
    std::memcpy(slot + sizeof(std::uint64_t) + offsetof(TeamMessage, count), &count, sizeof count);
    EXPECT_EQ(there.take(5)->count, TeamMessage::max_words);
}

}  // namespace
}  // namespace npushmem
