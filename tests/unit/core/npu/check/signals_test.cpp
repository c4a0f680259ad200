// SPDX-License-Identifier: BSD-3-Clause
// Which clocks words pass on, and which copies signals have overtaken.
#include "core/npu/check/signals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace npushmem::npu::check {
namespace {

constexpr std::uintptr_t word = 64;
constexpr std::uint32_t core_1 = agents_per_core;
constexpr std::uint32_t core_2 = 2 * agents_per_core;

Access access_of(std::uint32_t agent, std::uint32_t sequence) {
    Access access;
    access.agent = agent;
    access.sequence = sequence;
    return access;
}

Clock clock_with(std::uint32_t agent, std::uint32_t sequence) {
    Clock clock;
    clock.raise(agent, sequence);
    return clock;
}

WordReleases::SharedClock released_with(std::uint32_t agent, std::uint32_t sequence) {
    return std::make_shared<const Clock>(clock_with(agent, sequence));
}

TEST(WordReleases, AnAcquireJoinsTheClockOfTheLastRelease) {
    WordReleases words(nullptr);
    words.release(word, released_with(core_1, 7), false, access_of(core_1, 7), 0, 1);
    words.release(word, released_with(core_2, 3), false, access_of(core_2, 3), 1, 2);
    Clock clock;
    words.acquire(word, clock);
    EXPECT_EQ(clock[core_1], 0U);
    EXPECT_EQ(clock[core_2], 3U);
}

TEST(WordReleases, AnAdditionKeepsEarlierReleases) {
    WordReleases words(nullptr);
    words.release(word, released_with(core_1, 7), false, access_of(core_1, 7), 0, 1);
    words.release(word, released_with(core_2, 3), true, access_of(core_2, 3), 1, 2);
    Clock clock;
    words.acquire(word, clock);
    EXPECT_EQ(clock[core_1], 7U);
    EXPECT_EQ(clock[core_2], 3U);
}

TEST(WordReleases, OnlyAnUnorderedReleaseOfAnotherCoreHasAnEarlierValue) {
    WordReleases words(nullptr);
    EXPECT_EQ(words.earlier(word, 2, Clock()).release, 0U);
    words.release(word, released_with(core_1, 7), false, access_of(core_1, 7), 40, 41);
    EXPECT_EQ(words.earlier(word, 2, Clock()).release, 1U);
    EXPECT_EQ(words.earlier(word, 2, Clock()).value, 40U);
    EXPECT_EQ(words.earlier(word, 1, Clock()).release, 0U);
    EXPECT_EQ(words.earlier(word, 2, clock_with(core_1, 7)).release, 0U);
}

// The numbers of the copies that are reported.
std::vector<std::uint32_t> reported(OvertakenCopies& copies) {
    std::vector<std::uint32_t> numbers;
    copies.report_all([&](const Access&, const Access& copy, std::uintptr_t) { numbers.push_back(copy.sequence); });
    return numbers;
}

TEST(OvertakenCopies, ASignalOvertakesIncompleteCopiesOfItsCoreToThatPe) {
    OvertakenCopies copies;
    copies.add(1, 0, access_of(core_1 + 3, 5));
    copies.add(2, 0, access_of(core_1 + 3, 6));
    copies.add(1, 0, access_of(core_2 + 3, 7));
    copies.signalled(1, access_of(core_1, 9), Clock());
    EXPECT_THAT(reported(copies), testing::ElementsAre(5U));
    EXPECT_THAT(reported(copies), testing::IsEmpty());
}

TEST(OvertakenCopies, ALaterSignalPublishesACompleteCopy) {
    OvertakenCopies copies;
    copies.add(1, 0, access_of(core_1 + 3, 5));
    copies.signalled(1, access_of(core_1, 9), Clock());
    copies.published(2, clock_with(core_1 + 3, 5));
    copies.published(1, clock_with(core_1 + 3, 4));
    copies.published(OvertakenCopies::any_pe, clock_with(core_1 + 3, 5));
    EXPECT_THAT(reported(copies), testing::IsEmpty());
}

}  // namespace
}  // namespace npushmem::npu::check
