// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/owner_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace npushmem::coll {
namespace {

// A lock's word that several threads use.
struct Word {
    std::atomic<std::uint64_t> word{0};

    Code compare_swap(std::uint64_t expected, std::uint64_t desired, std::uint64_t& before) {
        before = expected;
        word.compare_exchange_strong(before, desired);
        return Code::ok;
    }
};

TEST(OwnerLock, IsTakenAndReleased) {
    Word lock;
    const auto never = [](std::uint64_t, bool&) { return Code::protocol; };
    EXPECT_EQ(take_owned(lock, 3, never), Code::ok);
    EXPECT_EQ(lock.word, 3U);
    EXPECT_EQ(take_owned(lock, 4, never), Code::protocol);
    EXPECT_EQ(release_owned(lock, 3), Code::ok);
    EXPECT_EQ(lock.word, 0U);
}

TEST(OwnerLock, IsTakenFromADeadHolder) {
    Word lock;
    lock.word = 3;
    std::vector<std::uint64_t> waited_for;
    const auto dead = [&](std::uint64_t holder, bool& holder_died) {
        waited_for.push_back(holder);
        holder_died = true;
        return Code::ok;
    };
    EXPECT_EQ(take_owned(lock, 4, dead), Code::ok);
    EXPECT_EQ(lock.word, 4U);
    EXPECT_EQ(waited_for, std::vector<std::uint64_t>{3});
}

// The holder's own release arrives after another PE has taken the lock from it.
TEST(OwnerLock, ALateReleaseChangesNothing) {
    Word lock;
    lock.word = 4;
    EXPECT_EQ(release_owned(lock, 3), Code::ok);
    EXPECT_EQ(lock.word, 4U);
}

// Another PE takes the lock from the dead one first, and the caller waits for that one.
TEST(OwnerLock, OnlyOneTakesItFromADeadHolder) {
    Word lock;
    lock.word = 3;
    std::vector<std::uint64_t> waited_for;
    const auto wait = [&](std::uint64_t holder, bool& holder_died) {
        waited_for.push_back(holder);
        lock.word = holder == 3 ? 5 : 0;
        holder_died = holder == 3;
        return Code::ok;
    };
    EXPECT_EQ(take_owned(lock, 4, wait), Code::ok);
    EXPECT_EQ(waited_for, (std::vector<std::uint64_t>{3, 5}));
}

// Also one that fails because of the death of another PE than the holder.
TEST(OwnerLock, AFailedWaitFailsTheCall) {
    for (const Code code : {Code::timeout, Code::peer_dead}) {
        Word lock;
        lock.word = 3;
        EXPECT_EQ(take_owned(lock, 4, [code](std::uint64_t, bool&) { return code; }), code);
        EXPECT_EQ(lock.word, 3U);
    }
}

TEST(OwnerLock, ExcludesThreads) {
    Word lock;
    int counter = 0;
    std::vector<std::jthread> threads;
    constexpr int threads_count = 4;
    constexpr int rounds = 2000;
    for (std::uint64_t own = 1; own <= threads_count; ++own)
        threads.emplace_back([&lock, &counter, own] {
            const auto wait = [&lock](std::uint64_t holder, bool&) {
                while (lock.word == holder) std::this_thread::yield();
                return Code::ok;
            };
            for (int i = 0; i < rounds; ++i) {
                ASSERT_EQ(take_owned(lock, own, wait), Code::ok);
                ++counter;
                ASSERT_EQ(release_owned(lock, own), Code::ok);
            }
        });
    threads.clear();
    EXPECT_EQ(counter, threads_count * rounds);
}

}  // namespace
}  // namespace npushmem::coll
