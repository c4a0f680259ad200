// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/remote/request.hpp"

namespace npushmem::proxy {

namespace {

Request numbered(std::uint64_t number) {
    Request request;
    request.number = number;
    return request;
}

TEST(RequestRing, PopsInOrderOfPushes) {
    RequestRing ring(4);
    Request out;
    EXPECT_FALSE(ring.try_pop(out));
    EXPECT_TRUE(ring.all_taken());
    std::uint64_t pushed = 0;
    std::uint64_t popped = 0;
    for (int round = 0; round < 10; ++round) {  // around the ring several times
        for (int i = 0; i < 3; ++i) {
            Request request = numbered(++pushed);
            EXPECT_TRUE(ring.try_push(request));
        }
        EXPECT_FALSE(ring.all_taken());
        while (ring.try_pop(out)) EXPECT_EQ(out.number, ++popped);
        EXPECT_TRUE(ring.all_taken());
    }
    EXPECT_EQ(popped, pushed);
}

TEST(RequestRing, RefusesWhenFullAndLeavesTheRequest) {
    RequestRing ring(2);
    Request first = numbered(1);
    Request second = numbered(2);
    Request third = numbered(3);
    third.requester = std::make_shared<RequesterState>();
    EXPECT_TRUE(ring.try_push(first));
    EXPECT_TRUE(ring.try_push(second));
    EXPECT_FALSE(ring.try_push(third));
    EXPECT_NE(third.requester, nullptr);
    Request out;
    EXPECT_TRUE(ring.try_pop(out));
    EXPECT_TRUE(ring.try_push(third));
    EXPECT_TRUE(ring.try_pop(out));
    EXPECT_TRUE(ring.try_pop(out));
    EXPECT_EQ(out.number, 3U);
    EXPECT_NE(out.requester, nullptr);
}

// The number identifies the thread and its request; the other fields must match it.
TEST(RequestRing, LosesNothingOfManyThreads) {
    constexpr std::uint64_t threads = 3;
    constexpr std::uint64_t each = 500;
    RequestRing ring(16);
    std::vector<std::thread> producers;
    for (std::uint64_t thread = 0; thread < threads; ++thread)
        producers.emplace_back([&, thread] {
            for (std::uint64_t i = 1; i <= each; ++i) {
                Request request = numbered(thread << 32 | i);
                request.transfer.data.offset = request.number * 3;
                while (!ring.try_push(request)) std::this_thread::yield();
            }
        });
    std::vector<std::uint64_t> seen(threads);
    Request out;
    for (std::uint64_t taken = 0; taken < threads * each;) {
        if (!ring.try_pop(out)) {
            std::this_thread::yield();
            continue;
        }
        ++taken;
        EXPECT_EQ(out.number & 0xFFFFFFFFU, ++seen[out.number >> 32]);
        EXPECT_EQ(out.transfer.data.offset, out.number * 3);
    }
    for (std::thread& producer : producers) producer.join();
    EXPECT_TRUE(ring.all_taken());
}

}  // namespace

}  // namespace npushmem::proxy
