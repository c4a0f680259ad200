// SPDX-License-Identifier: BSD-3-Clause
// PE 0 of a few PEs, each on its own host, behind a transport that expects every call.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/remote/remote_access.hpp"
#include "npushmem/plugin/local_atomic.hpp"
#include "npushmem/testing/mocks.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {

inline constexpr std::uint64_t everything =
    NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL;

// Reports `dead` to waits that need it; records the PEs of the last check.
class RecordingLiveness final : public Liveness {
public:
    std::optional<int> find_dead(const PeRange& pes) override {
        checked.clear();
        for (int i = 0; i < pes.count; ++i) checked.push_back(pes.at(i));
        return std::find(checked.begin(), checked.end(), dead) == checked.end() ? std::nullopt : std::optional(dead);
    }

    int dead = -1;
    std::vector<int> checked;
};

class RemoteAccessFixture : public ::testing::Test {
protected:
    explicit RemoteAccessFixture(int pes) : pes_(pes), layout(hosts(pes)) {}

    static npushmem_peer peer_of(int /*transport*/, int pe) {
        return {sizeof(npushmem_peer), pe, {}, 0, 0, nullptr, "host"};
    }

    // All PEs are reached over this transport.
    void build_map(const Reach& reach) {
        using ::testing::_;
        using ::testing::Return;
        EXPECT_CALL(transport, reach(_)).Times(pes_).WillRepeatedly(Return(reach));
        EXPECT_CALL(transport, poll_event(_)).Times(::testing::AnyNumber()).WillRepeatedly(Return(Code::again));
        EXPECT_CALL(transport, progress()).Times(::testing::AnyNumber()).WillRepeatedly(Return(Code::again));
        auto built = TransportMap::build(named, layout, 0, peer_of);
        ASSERT_TRUE(built.ok()) << built.status().message();
        map.emplace(std::move(built).value());
        const auto handle_of = [this](int, int) { return std::span<const std::byte>(handle); };
        peers.emplace(named, *map, PeerDirectory{peer_of, handle_of}, waiter, Duration{1'000'000'000});
    }

    static HostLayout hosts(int pes) {
        std::vector<npushmem_host_id> ids(static_cast<std::size_t>(pes));
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i].machine = i;
        return HostLayout(ids);
    }

    int pes_;
    ::testing::StrictMock<MockTransport> transport;
    std::vector<NamedTransport> named{{"mock", &transport}};
    HostLayout layout;
    std::optional<TransportMap> map;
    Bytes handle{16};
    npushmem::testing::FakeWaitOs os;
    WaitCounters counters;
    RecordingLiveness liveness;
    Waiter waiter{choose_wait_budget({1, 2}), os, counters, &liveness};
    std::optional<RemotePeers> peers;
};

// PE 0 of two.
class RemoteAccessTest : public RemoteAccessFixture {
protected:
    RemoteAccessTest() : RemoteAccessFixture(2) {}

    void reach_with(std::uint64_t capabilities, std::uint32_t atomics = all_atomics) {
        build_map({capabilities, atomics, atomics, "mock"});
        access.emplace(*peers);
    }

    void expect_meeting() {
        using ::testing::_;
        using ::testing::Field;
        using ::testing::Return;
        EXPECT_CALL(transport, connect(Field(&npushmem_peer::pe, 1))).WillOnce(Return(Status{}));
        EXPECT_CALL(transport, import_memory(1, _)).WillOnce(Return(std::uint64_t{77}));
        EXPECT_CALL(transport, create_queue()).WillOnce(Return(std::uint64_t{9}));
    }

    void expect_parting() {
        using ::testing::Return;
        EXPECT_CALL(transport, destroy_queue(9)).WillOnce(Return(Code::ok));
        EXPECT_CALL(transport, release_memory(77)).WillOnce(Return(Code::ok));
    }

    // The end of the context, then of the job.
    void end() {
        access.reset();
        peers.reset();
    }

    std::optional<RemoteAccess> access;
    long value = 5;
};

}  // namespace npushmem
