// SPDX-License-Identifier: BSD-3-Clause
// A fabric in memory: transports of several PEs in one process. The test decides when operations arrive.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "npushmem/plugin/local_atomic.hpp"
#include "npushmem/plugin/transport.hpp"

namespace npushmem::fakes {

// State shared by the PEs' transports. For one thread.
class FakeFabric {
public:
    // Operations take effect when they are posted, or when the test delivers them.
    enum class Delivery { at_once, deferred };

    explicit FakeFabric(Delivery delivery = Delivery::at_once) : delivery_(delivery) {}

    // Replaces the default, in which every PE reaches every PE by calls.
    void reach_by(std::function<Reach(int from, int to)> reach) { reach_ = std::move(reach); }
    // The next `times` posts fail with again.
    void reject_posts(int times) { no_room_ = times; }
    // Executes the oldest held operation. Returns false if there is none.
    bool deliver_one() {
        if (held_.empty()) return false;
        Held next = std::move(held_.front());
        held_.pop_front();
        next.run();
        return true;
    }
    void deliver_all() {
        while (deliver_one()) {
        }
    }
    [[nodiscard]] std::size_t held() const { return held_.size(); }

private:
    friend class FakeTransport;
    struct Region {
        std::byte* base;
        std::uint64_t bytes;
    };
    struct Held {
        int pe;
        std::uint64_t queue;
        std::uint64_t token;
        std::function<void()> run;
    };

    Delivery delivery_;
    std::function<Reach(int, int)> reach_;
    int no_room_ = 0;
    std::uint64_t last_number_ = 0;
    std::map<std::uint64_t, Region> regions_;
    std::deque<Held> held_;  // in posting order, which is also the delivery order, so fences do nothing
};

class FakeTransport final : public Transport {
public:
    FakeTransport(FakeFabric& fabric, int pe) : fabric_(fabric), pe_(pe) {}

    Reach reach(const npushmem_peer& peer) override {
        if (fabric_.reach_) return fabric_.reach_(pe_, peer.pe);
        return {NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL, all_atomics,
                all_atomics, "fake fabric"};
    }
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override {
        const std::uint64_t number = ++fabric_.last_number_;
        fabric_.regions_[number] = {static_cast<std::byte*>(memory.base), memory.bytes};
        RegisteredMemory out{number, Bytes(sizeof number)};
        std::memcpy(out.handle.data(), &number, sizeof number);
        return out;
    }
    Code deregister_memory(std::uint64_t region) override {
        return fabric_.regions_.erase(region) == 1 ? Code::ok : Code::argument;
    }
    Result<std::uint64_t> import_memory(int, std::span<const std::byte> handle) override {
        std::uint64_t number = 0;
        if (handle.size() != sizeof number) return Status{Code::protocol, "no handle of the fake fabric"};
        std::memcpy(&number, handle.data(), sizeof number);
        if (!fabric_.regions_.contains(number)) return Status{Code::argument, "no such region"};
        return number;
    }
    Code release_memory(std::uint64_t) override { return Code::ok; }
    Result<void*> map(std::uint64_t remote) override {
        const auto region = fabric_.regions_.find(remote);
        if (region == fabric_.regions_.end()) return Status{Code::argument, "no such region"};
        return static_cast<void*>(region->second.base);
    }
    Result<std::uint64_t> create_queue() override { return *queues_.insert(++fabric_.last_number_).first; }
    Code destroy_queue(std::uint64_t queue) override {
        std::erase_if(fabric_.held_, [&](const auto& held) { return held.pe == pe_ && held.queue == queue; });
        return queues_.erase(queue) == 1 ? Code::ok : Code::argument;
    }

    Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        std::byte* target = at(op.remote, op.offset, op.bytes);
        return target == nullptr ? Code::range : post(queue, token, [=] { copy(target, op.local, op.bytes); });
    }
    Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        const std::byte* source = at(op.remote, op.offset, op.bytes);
        return source == nullptr ? Code::range : post(queue, token, [=] { copy(op.local, source, op.bytes); });
    }
    Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) override {
        std::byte* target = at(op.remote, op.offset, op.width);
        return target == nullptr ? Code::range : post(queue, token, [=] { (void)apply_atomic(target, op); });
    }
    Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) override {
        std::byte* target = at(op.data.remote, op.data.offset, op.data.bytes);
        std::byte* signal = at(op.signal_remote, op.signal_offset, sizeof op.signal);
        if (target == nullptr || signal == nullptr) return Code::range;
        return post(queue, token, [=] {
            copy(target, op.data.local, op.data.bytes);
            (void)apply_signal(signal, op.signal, op.operation);
        });
    }
    Code fence(std::uint64_t queue) override { return queues_.contains(queue) ? Code::ok : Code::argument; }
    Code quiet(std::uint64_t queue) override {
        if (!queues_.contains(queue)) return Code::argument;
        return holds([&](const auto& held) { return held.pe == pe_ && held.queue == queue; }) ? Code::again : Code::ok;
    }
    Code test(std::uint64_t, std::uint64_t token) override {
        return holds([&](const auto& held) { return held.token == token; }) ? Code::again : Code::ok;
    }

private:
    static void copy(void* to, const void* from, std::uint64_t bytes) {
        if (bytes > 0) std::memmove(to, from, bytes);
    }
    std::byte* at(std::uint64_t remote, std::uint64_t offset, std::uint64_t bytes) const {
        const auto region = fabric_.regions_.find(remote);
        if (region == fabric_.regions_.end() || offset > region->second.bytes || bytes > region->second.bytes - offset)
            return nullptr;
        return region->second.base + offset;
    }
    template <class Match>
    bool holds(Match match) const {
        return std::any_of(fabric_.held_.begin(), fabric_.held_.end(), match);
    }
    Code post(std::uint64_t queue, std::uint64_t* token, std::function<void()> run) {
        if (!queues_.contains(queue)) return Code::argument;
        if (fabric_.no_room_ > 0 && fabric_.no_room_-- > 0) return Code::again;
        const bool at_once = fabric_.delivery_ == FakeFabric::Delivery::at_once;
        const std::uint64_t number = at_once ? 0 : ++fabric_.last_number_;
        if (token != nullptr) *token = number;
        if (at_once)
            run();
        else
            fabric_.held_.push_back({pe_, queue, number, std::move(run)});
        return Code::ok;
    }

    FakeFabric& fabric_;
    int pe_;
    std::set<std::uint64_t> queues_;
};

}  // namespace npushmem::fakes
