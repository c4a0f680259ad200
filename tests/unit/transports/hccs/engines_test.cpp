// SPDX-License-Identifier: BSD-3-Clause
#include "transports/hccs/engines.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

namespace npushmem::hccs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PostedOperation put_number(std::uint64_t number) { return {PostedPut{{0, 0, 0, number, nullptr, 0}}}; }

// Engines without memory: the test records the transfers that they execute.
class Written : public ::testing::Test {
protected:
    static constexpr std::uint64_t queue = 7;

    Engines make(std::size_t engines, std::size_t depth = 16) {
        return {engines,
                depth,
                {[this] { return now_; },
                 [this](const PostedOperation& operation, Nanoseconds now) -> Engines::Start {
                     return {number_of(operation) == lost_ ? Code::unreachable : Code::ok,
                             takes_.count() == 0 ? takes_ : now + takes_};
                 },
                 [this](Nanoseconds when) { wakes_.push_back(when.count()); },
                 [this](const PostedOperation& operation, std::uint64_t) {
                     done_.push_back(number_of(operation));
                     return done_.back() == refused_ ? Code::range : Code::ok;
                 }}};
    }
    static std::uint64_t number_of(const PostedOperation& operation) {
        return std::get<PostedPut>(operation.what).op.offset;
    }

    Nanoseconds now_{1000};
    Nanoseconds takes_{0};
    std::uint64_t lost_ = 0;
    std::uint64_t refused_ = 0;
    std::vector<std::uint64_t> done_;
    std::vector<std::int64_t> wakes_;
};

TEST_F(Written, OneEngineKeepsTheOrder) {
    Engines engines = make(1);
    engines.open_queue(queue);
    for (std::uint64_t i = 1; i <= 4; ++i) EXPECT_EQ(engines.post(queue, put_number(i), nullptr), Code::ok);
    EXPECT_EQ(engines.quiet(queue), Code::again);
    EXPECT_TRUE(engines.run());
    EXPECT_THAT(done_, ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(engines.quiet(queue), Code::ok);
    EXPECT_FALSE(engines.run());
}

TEST_F(Written, EnginesOvertakeEachOtherUnlessFenced) {
    Engines engines = make(2);
    engines.open_queue(queue);
    for (const std::uint64_t i : {1U, 2U}) EXPECT_EQ(engines.post(queue, put_number(i), nullptr), Code::ok);
    EXPECT_TRUE(engines.run());
    EXPECT_NE(done_.front(), 1U) << "nothing was overtaken";
    done_.clear();
    for (std::uint64_t i = 1; i <= 6; ++i) {
        EXPECT_EQ(engines.post(queue, put_number(i), nullptr), Code::ok);
        EXPECT_EQ(engines.fence(queue), Code::ok);
    }
    EXPECT_TRUE(engines.run());
    EXPECT_THAT(done_, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(Written, AFenceOfOneQueueDoesNotDelayAnother) {
    Engines engines = make(1, 16);
    engines.open_queue(queue);
    engines.open_queue(8);
    takes_ = Nanoseconds(10);
    EXPECT_EQ(engines.post(queue, put_number(1), nullptr), Code::ok);
    EXPECT_EQ(engines.fence(queue), Code::ok);
    EXPECT_EQ(engines.quiet(8), Code::ok);
    EXPECT_EQ(engines.quiet(queue), Code::again);
}

TEST_F(Written, TokensCompleteOneByOne) {
    Engines engines = make(2);
    engines.open_queue(queue);
    takes_ = Nanoseconds(10);
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    EXPECT_EQ(engines.post(queue, put_number(1), &first), Code::ok);
    (void)engines.run();  // begins it
    now_ += Nanoseconds(5);
    EXPECT_EQ(engines.post(queue, put_number(2), &second), Code::ok);
    (void)engines.run();
    EXPECT_NE(first, 0U);
    EXPECT_NE(first, second);
    now_ += Nanoseconds(6);
    (void)engines.run();
    EXPECT_EQ(engines.test(queue, first), Code::ok);
    EXPECT_EQ(engines.test(queue, second), Code::again);
    now_ += Nanoseconds(6);
    (void)engines.run();
    EXPECT_EQ(engines.test(queue, second), Code::ok);
    EXPECT_EQ(engines.test(queue, second + 100), Code::argument) << "nobody gave out this one";
    EXPECT_EQ(engines.test(queue, 0), Code::ok);
}

TEST_F(Written, AFullEngineHasNoRoom) {
    Engines engines = make(1, 2);
    engines.open_queue(queue);
    EXPECT_EQ(engines.post(queue, put_number(1), nullptr), Code::ok);
    EXPECT_EQ(engines.post(queue, put_number(2), nullptr), Code::ok);
    EXPECT_EQ(engines.post(queue, put_number(3), nullptr), Code::again);
    (void)engines.run();
    EXPECT_EQ(engines.post(queue, put_number(3), nullptr), Code::ok);
}

TEST_F(Written, FailuresAreReportedOnce) {
    Engines engines = make(1);
    engines.open_queue(queue);
    lost_ = 1;
    refused_ = 2;
    std::uint64_t token = 0;
    EXPECT_EQ(engines.post(queue, put_number(1), nullptr), Code::ok);
    EXPECT_EQ(engines.post(queue, put_number(2), &token), Code::ok);
    EXPECT_EQ(engines.post(queue, put_number(3), nullptr), Code::ok);
    (void)engines.run();
    EXPECT_THAT(done_, ElementsAre(2, 3)) << "the lost one must not be carried out, and the others must";
    EXPECT_EQ(engines.test(queue, token), Code::range);
    EXPECT_EQ(engines.test(queue, token), Code::ok);
    EXPECT_EQ(engines.quiet(queue), Code::unreachable);
    EXPECT_EQ(engines.quiet(queue), Code::ok);
}

TEST_F(Written, ClosingAQueueDropsItsTransfers) {
    Engines engines = make(1);
    engines.open_queue(queue);
    engines.open_queue(8);
    EXPECT_EQ(engines.post(queue, put_number(1), nullptr), Code::ok);
    EXPECT_EQ(engines.post(8, put_number(2), nullptr), Code::ok);
    EXPECT_EQ(engines.close_queue(queue), Code::ok);
    (void)engines.run();
    EXPECT_THAT(done_, ElementsAre(2));
    EXPECT_EQ(engines.quiet(8), Code::ok);
    for (const Code code : {engines.close_queue(queue), engines.quiet(queue), engines.fence(queue),
                            engines.test(queue, 0), engines.post(queue, put_number(1), nullptr)})
        EXPECT_EQ(code, Code::argument);
}

TEST_F(Written, PostsAndDueTransfersWakeTheThread) {
    Engines engines = make(1);
    engines.open_queue(queue);
    takes_ = Nanoseconds(10);
    for (const std::uint64_t i : {1U, 2U}) EXPECT_EQ(engines.post(queue, put_number(i), nullptr), Code::ok);
    EXPECT_THAT(wakes_, ElementsAre(0)) << "one call is enough";
    wakes_.clear();
    engines.woken();
    (void)engines.run();
    EXPECT_THAT(wakes_, ElementsAre(1010));
    now_ = Nanoseconds(1010);
    wakes_.clear();
    engines.woken();
    (void)engines.run();
    EXPECT_THAT(wakes_, ElementsAre(1020)) << "the second begins when the first is over";
    EXPECT_THAT(done_, ElementsAre(1));
    now_ = Nanoseconds(1020);
    wakes_.clear();
    engines.woken();
    (void)engines.run();
    EXPECT_THAT(wakes_, IsEmpty());
}

TEST(Engines, MayBeUsedByManyThreads) {
    constexpr std::uint64_t each = 2000;
    std::atomic<std::uint64_t> carried_out{0};
    Engines engines(3, 8,
                    {[] { return Nanoseconds(1); },
                     [](const PostedOperation&, Nanoseconds) { return Engines::Start{}; }, [](Nanoseconds) {},
                     [&](const PostedOperation&, std::uint64_t) {
                         carried_out.fetch_add(1, std::memory_order_relaxed);
                         return Code::ok;
                     }});
    std::vector<std::thread> threads;
    for (std::uint64_t queue = 1; queue <= 3; ++queue) {
        engines.open_queue(queue);
        threads.emplace_back([&engines, queue] {
            for (std::uint64_t i = 0; i < each; ++i) {
                while (engines.post(queue, put_number(i), nullptr) == Code::again) (void)engines.run();
                if (i % 5 == 0) {
                    EXPECT_EQ(engines.fence(queue), Code::ok);
                }
            }
            while (engines.quiet(queue) == Code::again) (void)engines.run();
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(carried_out.load(), 3 * each);
}

}  // namespace
}  // namespace npushmem::hccs
