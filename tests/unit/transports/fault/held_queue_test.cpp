// SPDX-License-Identifier: BSD-3-Clause
#include "transports/fault/held_queue.hpp"

#include <gmock/gmock.h>

#include <set>

#include "npushmem/testing/mocks.hpp"

namespace npushmem::fault {
namespace {

using ::testing::_;
using ::testing::InSequence;
using ::testing::NiceMock;
using ::testing::Return;

constexpr std::uint64_t number = 5;

HeldOperation put_to(int pe, std::uint64_t offset) { return {.posted = {PostedPut{{pe, 0, 1, offset, nullptr, 0}}}}; }
HeldOperation get_from(int pe, std::uint64_t offset) { return {.posted = {PostedGet{{pe, 0, 1, offset, nullptr, 0}}}}; }

// Records the order in which operations reach the inner transport, by their offsets.
class Held : public ::testing::Test {
protected:
    Held() {
        const auto record = [this](std::uint64_t, const npushmem_rma& op, std::uint64_t* token) {
            order_.push_back(op.offset);
            *token = 0;
            return Code::ok;
        };
        ON_CALL(inner_, put(_, _, _)).WillByDefault(record);
        ON_CALL(inner_, get(_, _, _)).WillByDefault(record);
        ON_CALL(inner_, fence(_)).WillByDefault([this](std::uint64_t) {
            order_.push_back(fence_mark);
            return Code::ok;
        });
    }
    static constexpr std::uint64_t fence_mark = 1000;

    NiceMock<MockTransport> inner_;
    std::vector<std::uint64_t> order_;
};

TEST_F(Held, WithoutAFenceEveryOrderOccurs) {
    std::set<std::vector<std::uint64_t>> orders;
    Random random(1);
    for (int i = 0; i < 300; ++i) {
        HeldQueue queue(inner_, number, true);
        order_.clear();
        for (std::uint64_t offset = 0; offset < 3; ++offset) queue.hold(put_to(1, offset));
        queue.step(random);
        orders.insert(order_);
    }
    EXPECT_EQ(orders.size(), 6U);
}

TEST_F(Held, WithoutReorderingTheOrderIsThatOfPosting) {
    Random random(1);
    HeldQueue queue(inner_, number, false);
    for (std::uint64_t offset = 0; offset < 20; ++offset) queue.hold(put_to(1, offset));
    queue.step(random);
    EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end()));
    EXPECT_EQ(order_.size(), 20U);
}

TEST_F(Held, AFenceKeepsUpdatesToOnePeerInOrder) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random random(seed);
        HeldQueue queue(inner_, number, true);
        order_.clear();
        queue.hold(put_to(1, 0));
        queue.hold(put_to(1, 1));
        queue.fence();
        queue.hold(put_to(1, 2));
        queue.hold(get_from(1, 3));
        queue.step(random);
        const auto at = [&](std::uint64_t what) {
            return std::find(order_.begin(), order_.end(), what) - order_.begin();
        };
        ASSERT_GT(std::min(at(2), at(3)), std::max(at(0), at(1))) << "seed " << seed;
        // The inner transport may reorder too, so it needs the fence.
        ASSERT_GT(at(fence_mark), std::max(at(0), at(1)));
        ASSERT_LT(at(fence_mark), std::min(at(2), at(3)));
    }
}

TEST_F(Held, AFenceOrdersNothingBetweenPeersAndNothingAfterGets) {
    bool overtaken_put = false;
    bool overtaken_get = false;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random random(seed);
        HeldQueue queue(inner_, number, true);
        order_.clear();
        queue.hold(put_to(1, 0));
        queue.hold(get_from(2, 1));
        queue.fence();
        queue.hold(put_to(2, 2));
        queue.step(random);
        overtaken_put = overtaken_put || order_.back() == 0;
        overtaken_get = overtaken_get || order_.back() == 1;
    }
    EXPECT_TRUE(overtaken_put);
    EXPECT_TRUE(overtaken_get);
}

TEST_F(Held, WaitsForTheGivenNumberOfSteps) {
    Random random(1);
    HeldQueue queue(inner_, number, true);
    HeldOperation late = put_to(1, 0);
    late.waiting = 3;
    const std::uint64_t token = queue.hold(late);
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(queue.step(random));
    EXPECT_EQ(queue.test(token), Code::again);
    EXPECT_EQ(queue.quiet(), Code::again);
    EXPECT_TRUE(queue.step(random));
    EXPECT_EQ(queue.test(token), Code::ok);
    EXPECT_EQ(queue.quiet(), Code::ok);
}

TEST_F(Held, KeepsOperationsForWhichTheInnerTransportHasNoRoom) {
    Random random(1);
    HeldQueue queue(inner_, number, true);
    EXPECT_CALL(inner_, put(_, _, _)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    queue.hold(put_to(1, 0));
    EXPECT_FALSE(queue.step(random));
    EXPECT_EQ(queue.held(), 1U);
    EXPECT_TRUE(queue.step(random));
    EXPECT_EQ(queue.held(), 0U);
}

TEST_F(Held, AnOperationIsCompleteWhenTheInnerOneIs) {
    Random random(1);
    HeldQueue queue(inner_, number, true);
    EXPECT_CALL(inner_, put(_, _, _)).WillOnce([](std::uint64_t, const npushmem_rma&, std::uint64_t* token) {
        *token = 77;
        return Code::ok;
    });
    EXPECT_CALL(inner_, test(number, 77)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    const std::uint64_t token = queue.hold(put_to(1, 0));
    queue.step(random);
    EXPECT_EQ(queue.test(token), Code::again);
    EXPECT_EQ(queue.test(token), Code::ok);
    EXPECT_EQ(queue.test(token), Code::ok);
    EXPECT_EQ(queue.test(token + 1), Code::argument);
}

TEST_F(Held, AFailureIsReportedOnceByTestOrQuiet) {
    Random random(1);
    HeldQueue queue(inner_, number, true);
    EXPECT_CALL(inner_, put(_, _, _)).WillRepeatedly(Return(Code::range));
    const std::uint64_t token = queue.hold(put_to(1, 0));
    queue.step(random);
    EXPECT_EQ(queue.test(token), Code::range);
    EXPECT_EQ(queue.test(token), Code::ok);
    queue.hold(put_to(1, 1));
    queue.step(random);
    EXPECT_EQ(queue.quiet(), Code::range);
    EXPECT_EQ(queue.quiet(), Code::ok);
}

TEST_F(Held, IsFullAtItsCapacity) {
    HeldQueue queue(inner_, number, true);
    for (std::size_t i = 0; i < HeldQueue::room; ++i) {
        EXPECT_FALSE(queue.full());
        queue.hold(put_to(1, i));
    }
    EXPECT_TRUE(queue.full());
}

}  // namespace
}  // namespace npushmem::fault
