// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/job_transports.hpp"

#include <gmock/gmock.h>

#include "npushmem/testing/mocks.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::InSequence;
using ::testing::NiceMock;
using ::testing::Return;

// A job of one PE whose bootstrap gathers this PE's own bytes.
class JobTransportsTest : public ::testing::Test {
protected:
    JobTransportsTest() : job(single_pe()) {}

    static std::unique_ptr<Bootstrap> single_pe() {
        auto bootstrap = std::make_unique<NiceMock<MockBootstrap>>();
        ON_CALL(*bootstrap, rank()).WillByDefault(Return(0));
        ON_CALL(*bootstrap, nranks()).WillByDefault(Return(1));
        ON_CALL(*bootstrap, allgather(_, _))
            .WillByDefault([](std::span<const std::byte> send, std::span<std::byte> receive) {
                std::copy(send.begin(), send.end(), receive.begin());
                return Status{};
            });
        return bootstrap;
    }

    JobMembership job;
};

TEST_F(JobTransportsTest, ReportTheCapabilitiesOfTheSelection) {
    JobTransports transports(job, {});
    EXPECT_FALSE(transports.serves_other_hosts());
    EXPECT_FALSE(transports.pins_memory());
    transports.add({"far", nullptr, true, false});
    EXPECT_TRUE(transports.serves_other_hosts());
    EXPECT_FALSE(transports.pins_memory());
    transports.add({"pinning", nullptr, false, true});
    EXPECT_TRUE(transports.pins_memory());
    EXPECT_TRUE(transports.complete_selection().ok());
    ASSERT_EQ(transports.named().size(), 2U);
    EXPECT_EQ(transports.named()[1].name, "pinning");
}

TEST_F(JobTransportsTest, RejectMoreTransportsThanTheMapCanHold) {
    JobTransports transports(job, {});
    for (int i = 0; i < 65; ++i) transports.add({"self", nullptr});
    EXPECT_EQ(transports.complete_selection().code(), Code::config);
}

TEST_F(JobTransportsTest, DeregisterEveryRegistrationThatSucceeded) {
    auto first = std::make_unique<NiceMock<MockTransport>>();
    auto second = std::make_unique<NiceMock<MockTransport>>();
    for (auto* transport : {first.get(), second.get()}) ON_CALL(*transport, address()).WillByDefault(Return(Bytes{}));
    {
        InSequence order;
        EXPECT_CALL(*first, register_memory(_)).WillOnce(Return(RegisteredMemory{7, Bytes{}}));
        EXPECT_CALL(*second, register_memory(_)).WillOnce(Return(Status{Code::memory, "locked-memory limit"}));
        EXPECT_CALL(*first, deregister_memory(7));
    }
    EXPECT_CALL(*second, deregister_memory(_)).Times(0);
    JobTransports transports(job, {});
    transports.add({"first", std::move(first)});
    transports.add({"second", std::move(second)});
    ASSERT_TRUE(transports.complete_selection().ok());
    EXPECT_EQ(transports.exchange_endpoints({}).code(), Code::memory);
}

}  // namespace
}  // namespace npushmem
