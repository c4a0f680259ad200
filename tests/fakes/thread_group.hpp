// SPDX-License-Identifier: BSD-3-Clause
// A group of collective operations whose members are threads of one process.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "core/coll/cache_line_exchange.hpp"
#include "core/coll/group.hpp"
#include "core/coll/leader_exchange.hpp"

namespace npushmem::fakes {

// Members of a group as threads of this process. Their memory is mapped by all, or accessible only by put and get.
struct ThreadGroupWorld {
    static constexpr std::uint64_t room = 1U << 20;

    static constexpr std::uint64_t lines_at = room + coll::Workspace::bytes;
    static constexpr std::uint64_t ring_at = lines_at + coll::CacheLineExchange::bytes;
    static constexpr std::uint64_t part =
        lines_at + std::max(coll::CacheLineExchange::bytes + coll::BroadcastRing::bytes,
                            coll::HostSync::memory_bytes(coll::HostSync::max_slots) + coll::LeaderExchange::bytes);

    // `with_lines`: the group has a CacheLineExchange and a BroadcastRing, if possible.
    ThreadGroupWorld(int size, bool found, bool with_lines = true)
        : members(size),
          mapped(found),
          lines(found && with_lines && size > 1 && size <= coll::CacheLineExchange::max_members),
          memory(part / sizeof(Line) * static_cast<std::size_t>(size)),
          thread_barrier(size) {}

    struct alignas(64) Line {
        std::byte bytes[64] = {};
    };
    [[nodiscard]] std::byte* of(int member) { return memory[0].bytes + static_cast<std::size_t>(member) * part; }

    int members;
    bool mapped;
    bool lines;
    coll::Method method = coll::Method::automatic;  // of the collectives that have it
    bool oversubscribed = false;
    int failing_put = 0;   // member 0's put with this number fails; 0: none
    int hosts = 1;         // member m is on host m % hosts; members of a host map each other
    bool signals = false;  // with several hosts: the group has a HostSync,
    bool leaders = false;  // and a LeaderExchange
    std::vector<Line> memory;
    std::barrier<> thread_barrier;
    // Members may outnumber the cores: a wait yields, then sleeps until it is woken.
    SystemWaitOs os;
    WaitCounters counters;
    Waiter waiter{choose_wait_budget({1, members}), os, counters};
};

// The signals of one member. Its put with number `failing_put` fails, if it is member 0.
class ThreadHostSignals final : public coll::HostSignals {
public:
    ThreadHostSignals(ThreadGroupWorld& world, int index) : world_(world), index_(index) {}

    Status put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes, std::uint64_t signal_at,
               std::uint64_t signal) override {
        EXPECT_NE(member % world_.hosts, index_ % world_.hosts) << "a message within a host";
        if (index_ == 0 && ++puts_ == world_.failing_put) return {Code::system, "put failed"};
        if (bytes > 0) std::memcpy(world_.of(member) + offset, source, bytes);
        word(member, signal_at).store(signal, std::memory_order_release);
        return {};
    }
    Result<std::uint64_t> wait(std::uint64_t signal_at, std::uint64_t least, int /*sender*/) override {
        return until(index_, signal_at, least);
    }
    Status announce(std::uint64_t counter_at, std::uint64_t step, const coll::Outcome& outcome) override {
        if (outcome.kind != coll::Outcome::ok) coll::HostCounter(world_.of(index_) + counter_at).fail(step, outcome);
        word(index_, counter_at).store(step, std::memory_order_release);
        return {};
    }
    Result<coll::Outcome> wait_for(int member, std::uint64_t counter_at, std::uint64_t step) override {
        EXPECT_EQ(member % world_.hosts, index_ % world_.hosts) << "memory that is not mapped";
        const auto arrived = until(member, counter_at, step);
        if (!arrived.ok()) return arrived.status();
        return coll::HostCounter(world_.of(member) + counter_at).outcome(step);
    }
    int dead_pe() override { return -1; }

private:
    [[nodiscard]] std::atomic_ref<std::uint64_t> word(int member, std::uint64_t offset) const {
        return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(world_.of(member) + offset));
    }
    [[nodiscard]] Result<std::uint64_t> until(int member, std::uint64_t offset, std::uint64_t least) const {
        std::uint64_t seen = 0;
        const auto ready = [&] { return (seen = word(member, offset).load(std::memory_order_acquire)) >= least; };
        const Code code =
            world_.waiter.until(ready, {.what = "a test", .needs = {}, .timeout = std::chrono::seconds{20}});
        return code == Code::ok ? Result<std::uint64_t>(seen) : Result<std::uint64_t>(Status{code, "a test"});
    }

    ThreadGroupWorld& world_;
    int index_;
    int puts_ = 0;
};

class ThreadGroup final : public coll::Group {
public:
    ThreadGroup(ThreadGroupWorld& world, int index) : world_(world), index_(index) {
        if (world.hosts > 1) {
            grid_ = {world.hosts, world.members / world.hosts, {index % world.hosts, index / world.hosts}, {}};
            for (int host = 0; host < world.hosts; ++host)
                for (int member = host; member < world.members; member += world.hosts) grid_->members.push_back(member);
        }
        if (world.signals) begin_host_sync();
        if (!world.lines) return;
        const barrier::MemberStates lines{{world.of(0) + ThreadGroupWorld::lines_at, ThreadGroupWorld::part}};
        const PeRange all{0, 1, world.members};
        lines_.emplace(lines, all, index, world.waiter, std::chrono::seconds{60});
        ring_.emplace(lines.behind(ThreadGroupWorld::ring_at - ThreadGroupWorld::lines_at), all, index, true,
                      world.waiter, std::chrono::seconds{60});
    }

    [[nodiscard]] int size() const override { return world_.members; }
    [[nodiscard]] int index() const override { return index_; }
    Status sync() override {
        EXPECT_EQ(outstanding_, 0) << "a put was not completed before the synchronisation";
        world_.thread_barrier.arrive_and_wait();
        return {};
    }
    Status complete() override {
        outstanding_ = 0;
        return {};
    }
    [[nodiscard]] std::byte* mapped_address(int member, std::uint64_t offset) const override {
        const bool same_host = world_.hosts > 1 && member % world_.hosts == index_ % world_.hosts;
        return world_.mapped || same_host || member == index_ ? at(member, offset) : nullptr;
    }
    [[nodiscard]] const coll::HostGrid* host_grid() const override { return grid_ ? &*grid_ : nullptr; }
    [[nodiscard]] bool all_mapped() const override { return world_.mapped; }
    [[nodiscard]] bool is_oversubscribed() const override { return world_.oversubscribed; }
    Status put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes) override {
        if (index_ == 0 && ++puts_ == world_.failing_put) return {Code::system, "put failed"};
        ++outstanding_;
        std::memcpy(at(member, offset), source, bytes);
        return {};
    }
    Status get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) override {
        std::memcpy(dest, at(member, offset), bytes);
        return {};
    }
    [[nodiscard]] std::uint64_t workspace() const override { return ThreadGroupWorld::room; }
    unsigned next_workspace_half() override { return uses_++ % 2; }
    [[nodiscard]] coll::HostSync* host_sync() const override { return host_sync_.get(); }
    [[nodiscard]] coll::SmallExchange* small_exchange() override {
        if (leader_exchange_) return &*leader_exchange_;
        return lines_ ? &*lines_ : nullptr;
    }
    [[nodiscard]] coll::SmallBroadcast* small_broadcast() override {
        if (leader_exchange_) return &*leader_exchange_;
        return ring_ ? &*ring_ : nullptr;
    }
    [[nodiscard]] coll::Method method(std::uint32_t collective, std::uint64_t /*bytes*/) const override {
        return std::ranges::count(coll::methods_of(collective), world_.method) > 0 ? world_.method
                                                                                   : coll::Method::automatic;
    }
    [[nodiscard]] coll::LibraryTeam* library() override { return library_; }
    void use_library(coll::LibraryTeam* library) { library_ = library; }

private:
    void begin_host_sync() {
        std::vector<std::vector<int>> hosts(static_cast<std::size_t>(world_.hosts));
        for (int member = 0; member < world_.members; ++member)
            hosts[static_cast<std::size_t>(member % world_.hosts)].push_back(member);
        host_sync_ = std::make_unique<coll::HostSync>(signals_, ThreadGroupWorld::lines_at, std::move(hosts), index_);
        if (world_.leaders)
            leader_exchange_.emplace(*this, *host_sync_,
                                     ThreadGroupWorld::lines_at + coll::HostSync::memory_bytes(world_.members));
    }
    [[nodiscard]] std::byte* at(int member, std::uint64_t offset) const { return world_.of(member) + offset; }

    ThreadGroupWorld& world_;
    int index_;
    int outstanding_ = 0;
    int puts_ = 0;
    unsigned uses_ = 0;
    std::optional<coll::HostGrid> grid_;
    ThreadHostSignals signals_{world_, index_};
    std::unique_ptr<coll::HostSync> host_sync_;
    std::optional<coll::LeaderExchange> leader_exchange_;
    std::optional<coll::CacheLineExchange> lines_;
    std::optional<coll::BroadcastRing> ring_;
    coll::LibraryTeam* library_ = nullptr;
};

}  // namespace npushmem::fakes
