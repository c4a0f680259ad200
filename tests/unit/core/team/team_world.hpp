// SPDX-License-Identifier: BSD-3-Clause
// The team tables of several PEs in one process, each driven by a thread; their memory is mapped by all.
#pragma once

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "core/team/team_table.hpp"
#include "npushmem/testing/mocks.hpp"
#include "tests/fakes/thread_world.hpp"

namespace npushmem {

class TeamWorld {
public:
    // The timeout of every wait; those of the PE `impatient` end after 50 ms.
    explicit TeamWorld(int pes, Duration timeout = std::chrono::seconds{60}, int impatient = -1)
        : memory_(pes, control_bytes + TeamTable::pool_bytes) {
        for (int pe = 0; pe < pes; ++pe)
            pes_.push_back(std::make_unique<Pe>(*this, pe, pe == impatient ? std::chrono::milliseconds{50} : timeout));
    }

    // Runs `part` in each PE's thread, with its table and its number.
    void run(const std::function<void(TeamTable&, int)>& part) {
        memory_.run([&](int pe) { part(table(pe), pe); });
    }
    [[nodiscard]] TeamTable& table(int pe) { return *pes_[static_cast<std::size_t>(pe)]->table; }
    [[nodiscard]] int pes() const { return memory_.pes(); }
    // All PEs find it dead from now on.
    void kill(int pe) { dead_.fetch_or(1U << pe, std::memory_order_relaxed); }

private:
    // Relaxed: only the bits matter.
    struct Watch final : Liveness {
        explicit Watch(const std::atomic<unsigned>& dead) : dead_(dead) {}
        std::optional<int> find_dead(const PeRange& pes) override {
            const unsigned dead = dead_.load(std::memory_order_relaxed);
            for (int i = 0; i < pes.count; ++i)
                if ((dead >> pes.at(i) & 1U) != 0) return pes.at(i);
            return std::nullopt;
        }
        const std::atomic<unsigned>& dead_;
    };

    struct Pe {
        Pe(TeamWorld& world, int me, Duration timeout)
            : layout(std::vector<npushmem_host_id>(static_cast<std::size_t>(world.pes()))),
              watch(world.dead_),
              waiter(choose_wait_budget({1, world.pes()}), os, counters, &watch) {
            using ::testing::Return;
            ON_CALL(transport, reach).WillByDefault(Return(Reach{NPUSHMEM_CAP_MAP, 0, 0, "mapped"}));
            ON_CALL(transport, progress).WillByDefault(Return(Code::again));
            ON_CALL(transport, poll_event).WillByDefault(Return(Code::again));
            const auto peer_of = [](int, int pe) {
                return npushmem_peer{sizeof(npushmem_peer), pe, {}, 0, 0, nullptr, "host"};
            };
            auto built = TransportMap::build(named, layout, me, peer_of);
            EXPECT_TRUE(built.ok()) << built.status().message();
            map.emplace(std::move(built).value());
            peers.emplace(named, *map, PeerDirectory{peer_of, {}}, waiter, timeout);
            remote.emplace(*peers);
            fast.peers = world.memory_.base(0);
            fast.stride = world.memory_.part();
            fast.mapped_pes = static_cast<std::uint32_t>(world.pes());
            std::memset(world.memory_.base(me), 0, control_bytes);
            auto made = TeamTable::make(
                {me,
                 world.pes(),
                 4.0,
                 fast,
                 [](int) { return nullptr; },
                 world.memory_.base(me),
                 sleepers,
                 *remote,
                 waiter,
                 timeout,
                 "auto",
                 tuning,
                 layout,
                 0,
                 nullptr,
                 {},
                 [&world] {
                     return PeRange{0, 1, world.pes()};
                 },
                 &watch},
                control_bytes,
                [&world, me](std::uint64_t offset, std::uint64_t bytes) {
                    std::memset(world.memory_.base(me) + offset, 0, bytes);
                    return Status{};
                },
                PeRange{0, 1, world.pes()}, true);
            EXPECT_TRUE(made.ok()) << made.status().message();
            table = std::move(made).value();
        }

        ::testing::NiceMock<MockTransport> transport;
        std::vector<NamedTransport> named{{"mock", &transport}};
        HostLayout layout;
        std::optional<TransportMap> map;
        std::atomic<std::uint32_t> sleepers{0};
        SystemWaitOs os;
        WaitCounters counters;
        Watch watch;
        Waiter waiter;
        std::optional<RemotePeers> peers;
        std::optional<RemoteAccess> remote;
        FastMap fast;
        barrier::Tuning tuning;
        std::unique_ptr<TeamTable> table;
    };

    fakes::ThreadWorld memory_;
    std::atomic<unsigned> dead_{0};  // a bit for each PE
    std::vector<std::unique_ptr<Pe>> pes_;
};

}  // namespace npushmem
