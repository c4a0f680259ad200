#include "core/team/team_mail.hpp"

#include <gmock/gmock.h>

#include "tests/unit/core/team/team_world.hpp"

namespace npushmem {
namespace {

// The boxes of two PEs, beside those of their tables.
class TeamMailTest : public ::testing::Test {
protected:
    static constexpr std::uint64_t box = 1U << 20;

    explicit TeamMailTest(Duration timeout = std::chrono::seconds{60}) : world(2, timeout) {
        for (const int pe : {0, 1}) std::memset(world.table(pe).parts().own_slice + box, 0, TeamMail::bytes);
    }

    static Letter letter(std::uint64_t id, std::uint32_t number, std::uint32_t words = 1) {
        Letter made;
        made.id = id;
        made.number = number;
        for (std::uint32_t i = 0; i < words; ++i) made.add(1000 * number + i);
        return made;
    }

    TeamWorld world;
    TeamMail here{world.table(0).parts(), box};
    TeamMail there{world.table(1).parts(), box};
};

TEST_F(TeamMailTest, BringsEveryWord) {
    there.expect(5);
    ASSERT_TRUE(here.send(1, letter(5, 3, Letter::most_words)).ok());
    const auto come = there.take(5);
    ASSERT_TRUE(come.has_value());
    EXPECT_EQ(come->number, 3U);
    ASSERT_EQ(come->count, Letter::most_words);
    for (std::uint32_t i = 0; i < come->count; ++i) EXPECT_EQ(come->words[i], 3000 + i);
    EXPECT_FALSE(there.take(5).has_value());
}

TEST_F(TeamMailTest, KeepsLettersByIdAndFindsThemByNumber) {
    there.expect(5);
    there.expect(6);
    for (const std::uint32_t number : {2U, 0U, 1U}) ASSERT_TRUE(here.send(1, letter(5, number)).ok());
    ASSERT_TRUE(here.send(1, letter(6, 9)).ok());
    for (const std::uint32_t number : {0U, 1U, 2U}) EXPECT_EQ(there.take(5, number)->words[0], 1000 * number);
    EXPECT_FALSE(there.take(5, 3).has_value());
    EXPECT_EQ(there.take(6)->number, 9U);
}

TEST_F(TeamMailTest, DropsWhatNobodyExpects) {
    there.expect(5);
    there.forget(5);
    ASSERT_TRUE(here.send(1, letter(5, 0)).ok());
    EXPECT_FALSE(there.take(5).has_value());
    there.expect(5);
    EXPECT_FALSE(there.take(5).has_value());
}

// Many times more than the boxes hold, both ways at a time; each reads when it has written.
TEST_F(TeamMailTest, TwoWhoWriteToEachOtherDoNotWaitForEachOther) {
    constexpr std::uint32_t letters = 500;
    here.expect(5);
    there.expect(5);
    const auto write_and_read = [&](TeamMail& mail, int pe) {
        for (std::uint32_t number = 0; number < letters; ++number) ASSERT_TRUE(mail.send(pe, letter(5, number)).ok());
        for (std::uint32_t number = 0; number < letters; ++number)
            while (!mail.take(5, number)) std::this_thread::yield();
    };
    const std::jthread other([&] { write_and_read(there, 0); });
    write_and_read(here, 1);
}

class TeamMailInAHurry : public TeamMailTest {
protected:
    TeamMailInAHurry() : TeamMailTest(std::chrono::milliseconds{20}) {}
};

TEST_F(TeamMailInAHurry, ABoxThatNobodyEmptiesIsWaitedForUntilTheDeadline) {
    for (std::uint32_t i = 0; i < TeamMail::slots; ++i) ASSERT_TRUE(here.send(1, letter(5, i)).ok());
    const Status sent = here.send(1, letter(5, 8));
    EXPECT_EQ(sent.code(), Code::timeout);
    EXPECT_THAT(sent.message(), ::testing::HasSubstr("room for a letter about a team from PE 1"));
    there.expect(5);
    EXPECT_TRUE(there.take(5).has_value());
    EXPECT_TRUE(here.send(1, letter(5, 8)).ok());
}

// What another process has written is not trusted.
TEST_F(TeamMailTest, AWrongCountIsCut) {
    there.expect(5);
    Letter wrong = letter(5, 0);
    ASSERT_TRUE(here.send(1, wrong).ok());
    std::byte* const slot = world.table(1).parts().own_slice + box;
    const std::uint32_t count = 1U << 30;
    std::memcpy(slot + sizeof(std::uint64_t) + offsetof(Letter, count), &count, sizeof count);
    EXPECT_EQ(there.take(5)->count, Letter::most_words);
}

}  // namespace
}  // namespace npushmem
