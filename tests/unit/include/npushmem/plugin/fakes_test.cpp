// SPDX-License-Identifier: BSD-3-Clause
// The fakes follow the contracts of the interfaces that they implement.
#include <gmock/gmock.h>

#include <array>
#include <thread>

#include "npushmem/testing/fake_bootstrap.hpp"
#include "npushmem/testing/fake_transport.hpp"

namespace npushmem::fakes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two PEs, the second's memory imported by the first.
class FakePair : public ::testing::Test {
protected:
    FakePair() {
        npushmem_memory memory{};
        memory.base = target_.data();
        memory.bytes = sizeof target_;
        const auto registered = second_.register_memory(memory);
        remote_ = first_.import_memory(1, registered.value().handle).value();
        queue_ = first_.create_queue().value();
    }
    Code put(std::uint64_t index, std::uint64_t* token = nullptr) {
        return first_.put(queue_, {1, 0, remote_, index * 8, &source_, 8}, token);
    }

    FakeFabric fabric_{FakeFabric::Delivery::deferred};
    FakeTransport first_{fabric_, 0};
    FakeTransport second_{fabric_, 1};
    std::array<std::uint64_t, 4> target_{};
    std::uint64_t source_ = 7;
    std::uint64_t remote_ = 0;
    std::uint64_t queue_ = 0;
};

TEST_F(FakePair, OperationsArriveWhenDelivered) {
    std::uint64_t token = 0;
    ASSERT_EQ(put(0, &token), Code::ok);
    ASSERT_EQ(put(1), Code::ok);
    EXPECT_EQ(first_.quiet(queue_), Code::again);
    EXPECT_TRUE(fabric_.deliver_one());
    EXPECT_THAT(target_, ElementsAre(7, 0, 0, 0));
    EXPECT_EQ(first_.test(queue_, token), Code::ok);
    EXPECT_EQ(first_.quiet(queue_), Code::again);
    fabric_.deliver_all();
    EXPECT_THAT(target_, ElementsAre(7, 7, 0, 0));
    EXPECT_EQ(first_.quiet(queue_), Code::ok);
}

TEST_F(FakePair, ForgetFailsHeldAndLaterOperations) {
    std::uint64_t token = 0;
    ASSERT_EQ(put(0, &token), Code::ok);
    ASSERT_EQ(put(1), Code::ok);
    EXPECT_EQ(first_.forget(1), Code::ok);
    EXPECT_EQ(fabric_.held(), 0U);
    EXPECT_THAT(target_, ElementsAre(0, 0, 0, 0));
    EXPECT_EQ(first_.test(queue_, token), Code::peer_dead);
    EXPECT_EQ(first_.test(queue_, token), Code::ok) << "a failure is reported once";
    EXPECT_EQ(first_.quiet(queue_), Code::peer_dead) << "the second put";
    EXPECT_EQ(first_.quiet(queue_), Code::ok) << "a failure is reported once";
    EXPECT_EQ(put(0), Code::peer_dead);
    EXPECT_EQ(first_.quiet(queue_), Code::ok) << "a refused operation is not outstanding";
}

TEST_F(FakePair, ForgetRefusesNumbersOfNoPeer) {
    ASSERT_EQ(put(0), Code::ok);
    EXPECT_EQ(first_.forget(-1), Code::argument);
    EXPECT_EQ(first_.forget(0), Code::argument) << "its own number";
    EXPECT_EQ(first_.forget(2), Code::ok) << "a PE to which nothing is outstanding";
    EXPECT_EQ(fabric_.held(), 1U);
}

TEST_F(FakePair, ErrorsAndBackPressure) {
    EXPECT_EQ(put(4), Code::range);
    fabric_.reject_posts(2);
    EXPECT_EQ(put(0), Code::again);
    EXPECT_EQ(put(0), Code::again);
    EXPECT_EQ(put(0), Code::ok);
    EXPECT_EQ(first_.destroy_queue(queue_), Code::ok);
    EXPECT_EQ(fabric_.held(), 0U);
    EXPECT_EQ(put(0), Code::argument);
}

TEST(FakeJob, GathersInOrderOfRank) {
    const auto job = std::make_shared<FakeJob>(3);
    std::array<std::array<std::byte, 6>, 3> received{};
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 3; ++rank)
        ranks.emplace_back([&, rank] {
            FakeBootstrap bootstrap(job, rank);
            for (int round = 1; round < 50; ++round) {
                const std::array<std::byte, 2> mine{static_cast<std::byte>(rank), static_cast<std::byte>(round)};
                auto& all = received[static_cast<std::size_t>(rank)];
                ASSERT_TRUE(bootstrap.allgather(mine, all).ok());
                for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(all[2 * i], static_cast<std::byte>(i));
                ASSERT_EQ(all[5], static_cast<std::byte>(round));
                ASSERT_TRUE(bootstrap.barrier().ok());
            }
        });
    for (auto& rank : ranks) rank.join();
}

TEST(FakeJob, AnAbortReachesTheOthers) {
    const auto job = std::make_shared<FakeJob>(2);
    std::thread failing([&] { FakeBootstrap(job, 1).abort("out of cheese"); });
    const Status seen = FakeBootstrap(job, 0).barrier();
    failing.join();
    EXPECT_EQ(seen.code(), Code::aborted);
    EXPECT_THAT(seen.message(), HasSubstr("rank 1 failed: out of cheese"));
}

TEST(FakeJob, TimesOutIfARankNeverArrives) {
    const auto job = std::make_shared<FakeJob>(2, std::chrono::milliseconds(10));
    EXPECT_EQ(FakeBootstrap(job, 0).barrier().code(), Code::timeout);
}

}  // namespace
}  // namespace npushmem::fakes
