// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/job_transports.hpp"

#include <gmock/gmock.h>

#include <cstring>

#include "npushmem/testing/mocks.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::Field;
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
    EXPECT_EQ(transports.exchange_endpoints({}, {}).code(), Code::memory);
}

// PE 0 of two, on two hosts. Its bootstrap gathers its own bytes for both PEs.
class RemoteChoice : public ::testing::Test {
protected:
    RemoteChoice() : job(two_hosts()) {
        const Config config = Config::read(FakeEnvironment{}).value();
        EXPECT_TRUE(job.exchange_records(config.settings(), {}).ok());
    }

    static std::unique_ptr<Bootstrap> two_hosts() {
        auto bootstrap = std::make_unique<NiceMock<MockBootstrap>>();
        ON_CALL(*bootstrap, nranks()).WillByDefault(Return(2));
        ON_CALL(*bootstrap, allgather(_, _))
            .WillByDefault([](std::span<const std::byte> send, std::span<std::byte> receive) {
                std::copy(send.begin(), send.end(), receive.begin());
                std::copy(send.begin(), send.end(), receive.begin() + static_cast<std::ptrdiff_t>(send.size()));
                std::size_t changed = 0;
                if (send.size() == sizeof(PeRecord))
                    changed = offsetof(PeRecord, common_hash);
                else if (send.size() == sizeof(CommonRecord))
                    changed = offsetof(CommonRecord, host) + offsetof(npushmem_host_id, machine);
                else
                    return Status{};
                receive[send.size() + changed] ^= std::byte{1};
                return Status{};
            });
        return bootstrap;
    }

    // The choice between transports with these paths to PE 1.
    std::string choose(const std::vector<std::pair<std::string, Reach>>& offers, std::string text = "") {
        JobTransports transports(job, {});
        transports.add({"self", std::make_unique<NiceMock<MockTransport>>()});
        RemoteCandidates candidates;
        candidates.text = std::move(text);
        for (const auto& [name, reach] : offers) {
            auto transport = std::make_unique<NiceMock<MockTransport>>();
            ON_CALL(*transport, address()).WillByDefault(Return(Bytes(4)));
            const auto to_peer =
                ::testing::AllOf(Field(&npushmem_peer::pe, 1), Field(&npushmem_peer::address_bytes, 4U));
            ON_CALL(*transport, reach(to_peer)).WillByDefault(Return(reach));
            candidates.transports.push_back({name, std::move(transport), true});
        }
        transports.add(std::move(candidates));
        EXPECT_TRUE(transports.complete_selection().ok());
        const auto chosen = transports.choose_candidate();
        EXPECT_TRUE(chosen.ok()) << chosen.status().message();
        EXPECT_EQ(transports.named().size(), offers.empty() ? 1U : 2U);
        if (!offers.empty()) {
            EXPECT_THAT(chosen.value(), ::testing::StartsWith(transports.named().back().name + " ("));
        }
        return chosen.value();
    }

    JobMembership job;
};

TEST_F(RemoteChoice, IsTheCheapestAndTellsTheCosts) {
    const Reach slow{NPUSHMEM_CAP_PUT, 0, 0, "tcp", 25'000, 2'500'000'000};
    const Reach fast{NPUSHMEM_CAP_PUT, 0, 0, "fabric", 2'000, 4'096'000'000};
    EXPECT_EQ(choose({{"ucx", slow}, {"libfabric", fast}}, "verbs: no RDMA device"),
              "libfabric (NPUSHMEM_REMOTE_TRANSPORT=auto, ucx: about 26.6 us for 4 KiB; libfabric: about 3.0 us for 4 "
              "KiB; not verbs: no RDMA device)");
}

TEST_F(RemoteChoice, ComparesLatenciesIfABandwidthIsUnknown) {
    const Reach slow{NPUSHMEM_CAP_PUT, 0, 0, "tcp", 25'000, 2'500'000'000};
    const Reach fast{NPUSHMEM_CAP_PUT, 0, 0, "fabric", 2'000, 4'096'000'000};
    const Reach other{NPUSHMEM_CAP_PUT, 0, 0, "fabric", 2'000, 0};
    EXPECT_EQ(choose({{"a", slow}, {"b", other}}),
              "b (NPUSHMEM_REMOTE_TRANSPORT=auto, a: latency of about 25.0 us; b: latency of about 2.0 us)");
    EXPECT_THAT(choose({{"a", fast}, {"b", other}}), ::testing::StartsWith("a ("))
        << "an unknown bandwidth is no advantage";
}

TEST_F(RemoteChoice, IsTheFirstOfEqualOrUnknownOnes) {
    const Reach some{NPUSHMEM_CAP_PUT, 0, 0, "tcp", 25'000, 0};
    const Reach unknown{NPUSHMEM_CAP_PUT, 0, 0, "tcp"};
    EXPECT_THAT(choose({{"a", some}, {"b", some}}), ::testing::StartsWith("a ("));
    EXPECT_THAT(choose({{"a", some}, {"b", unknown}}),
                ::testing::AllOf(::testing::StartsWith("a ("), ::testing::HasSubstr("b: of unknown cost")));
    EXPECT_THAT(choose({{"a", unknown}, {"b", some}}), ::testing::StartsWith("a ("));
}

TEST_F(RemoteChoice, IsOneThatReachesAllPes) {
    const Reach none{0, 0, 0, "no route"};
    const Reach some{NPUSHMEM_CAP_PUT, 0, 0, "tcp", 25'000, 0};
    EXPECT_THAT(choose({{"a", none}, {"b", some}}),
                ::testing::AllOf(::testing::StartsWith("b ("), ::testing::HasSubstr("a: does not reach all PEs")));
    const Reach unknown{NPUSHMEM_CAP_PUT, 0, 0, "some network"};
    EXPECT_THAT(choose({{"a", none}, {"b", unknown}}), ::testing::StartsWith("b ("));
    EXPECT_THAT(choose({{"a", none}, {"b", some}, {"c", unknown}}), ::testing::StartsWith("b ("))
        << "the first that reaches all PEs";
}

TEST_F(RemoteChoice, OfOneOrNoneNeedsNoCosts) {
    EXPECT_EQ(choose({{"a", Reach{}}}), "a (NPUSHMEM_REMOTE_TRANSPORT=auto)");
    EXPECT_EQ(choose({}, "none (tried a)"), "none (tried a)");
}

TEST_F(RemoteChoice, ReportsArrivalsIfThoseThatServeUnmappedPesDo) {
    for (const bool maps : {false, true}) {
        for (const Code reports : {Code::ok, Code::unsupported}) {
            auto serving = std::make_unique<NiceMock<MockTransport>>();
            auto unused = std::make_unique<NiceMock<MockTransport>>();
            ON_CALL(*serving, address()).WillByDefault(Return(Bytes{}));
            ON_CALL(*unused, address()).WillByDefault(Return(Bytes{}));
            ON_CALL(*serving, reach(_))
                .WillByDefault(Return(Reach{NPUSHMEM_CAP_PUT | (maps ? NPUSHMEM_CAP_MAP : 0U), 0, 0, "a mock"}));
            ON_CALL(*serving, register_memory(_)).WillByDefault(Return(RegisteredMemory{7, Bytes{}}));
            ON_CALL(*unused, register_memory(_)).WillByDefault(Return(RegisteredMemory{8, Bytes{}}));
            EXPECT_CALL(*serving, report_arrivals(_, this)).Times(maps ? 0 : 1).WillRepeatedly(Return(reports));
            EXPECT_CALL(*unused, report_arrivals(_, _)).Times(0);
            WaitServices waiting(job.records(), job.pes(), job.layout(), job.my_pe());
            JobTransports transports(job, {});
            transports.add({"serving", std::move(serving)});
            transports.add({"unused", std::move(unused)});
            ASSERT_TRUE(transports.complete_selection().ok());
            ASSERT_TRUE(transports.exchange_endpoints({}, {}).ok());
            ASSERT_TRUE(transports.build_map(waiting, {}).ok());
            EXPECT_EQ(transports.report_arrivals([](void*) {}, this), maps || reports == Code::ok);
        }
    }
}

}  // namespace
}  // namespace npushmem
