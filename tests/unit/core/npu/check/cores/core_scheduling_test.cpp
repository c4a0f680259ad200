// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/cores/core_scheduling.hpp"

#include <gtest/gtest.h>

namespace npushmem::npu::check {
namespace {

// How many of `times` rounds over `words` words were recognised at their last read.
int rounds_recognised(WaitLoop& loop, std::uintptr_t words, int times, std::uint64_t version) {
    int recognised = 0;
    for (int round = 0; round < times; ++round) {
        bool last = false;
        for (std::uintptr_t word = 1; word <= words; ++word) last = loop.read(word * 8, 0, version);
        recognised += last ? 1 : 0;
    }
    return recognised;
}

TEST(WaitLoop, RepeatedReadsOfOneValueAreAWait) {
    WaitLoop loop;
    for (int i = 0; i < WaitLoop::min_repeats; ++i) EXPECT_FALSE(loop.read(8, 5, 1)) << i;
    EXPECT_TRUE(loop.read(8, 5, 1));
    EXPECT_TRUE(loop.recognised());
}

TEST(WaitLoop, AChangeOfTheMemoryIsReadOnceByTheWholeLoop) {
    WaitLoop loop;
    EXPECT_GT(rounds_recognised(loop, 3, 20, 1), 0);
    for (std::uintptr_t word = 1; word <= 3; ++word) EXPECT_FALSE(loop.read(word * 8, 0, 2)) << word;
    EXPECT_TRUE(loop.read(8, 0, 2));
}

TEST(WaitLoop, NewValuesNewWordsAndOwnStoresAreNoWaitLoop) {
    WaitLoop loop;
    for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_FALSE(loop.read(8, i, 1));
    for (std::uintptr_t i = 0; i < 1000; ++i) EXPECT_FALSE(loop.read(i * 8, 0, 1));
    for (int i = 0; i < 1000; ++i) {
        EXPECT_FALSE(loop.read(8, 0, 1));
        loop.changed();
    }
}

TEST(WaitLoop, LoopsOverManyWordsAreRecognised) {
    for (const std::uintptr_t words : {2U, 64U, 100U, 500U}) {
        WaitLoop loop;
        EXPECT_GT(rounds_recognised(loop, words, 20, 1), 0) << words;
    }
}

TEST(WaitLoop, ALoopOverMoreWordsThanItHoldsIsForgottenAndHarmless) {
    WaitLoop loop;
    EXPECT_EQ(rounds_recognised(loop, 100'000, 3, 1), 0);
    EXPECT_GT(rounds_recognised(loop, 2, 20, 1), 0);
}

}  // namespace
}  // namespace npushmem::npu::check
