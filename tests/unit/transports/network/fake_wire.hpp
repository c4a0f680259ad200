// SPDX-License-Identifier: BSD-3-Clause
// A network in memory. The test decides every delivery; a seed reorders deliveries where reordering is allowed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "npushmem/plugin/local_atomic.hpp"
#include "transports/network/multi_rail_wire.hpp"
#include "transports/network/network_transport.hpp"

namespace npushmem::fakes {

class FakeWire;

// Connects all PEs of a test. Any thread may call.
class FakeNetwork {
public:
    FakeNetwork(int npes, network::Delivery delivery, unsigned seed = 1)
        : wires_(static_cast<std::size_t>(npes)), delivery_(delivery), random_(seed) {}

    std::unique_ptr<network::Wire> make_wire(int pe);

    // Delivers one item that may arrive next; false when there is none.
    bool step() {
        const std::lock_guard guard(lock_);
        std::vector<std::deque<Item>*> ready;
        for (auto& [pair, lane] : lanes_)
            if (!lane.empty() && hold != std::pair(std::get<0>(pair), std::get<2>(pair))) ready.push_back(&lane);
        if (ready.empty()) return false;
        std::deque<Item>& lane = *ready[random_() % ready.size()];
        const std::size_t index =
            lane.front().message || in_order() ? 0 : static_cast<std::size_t>(random_() % lane.size());
        const Item item = lane[index];
        lane.erase(lane.begin() + static_cast<std::ptrdiff_t>(index));
        item.arrive();
        return true;
    }

    [[nodiscard]] network::Delivery delivery() const { return delivery_; }

    // Settings of the test: at most so many things under way from one PE to another; nothing arrives any more.
    std::size_t room = 1000;
    bool cut = false;
    bool refuses_connections = false;
    std::optional<std::pair<int, std::uint32_t>> hold;  // nothing arrives of what this PE sends over this lane
    std::uint32_t native_atomics = 0;
    std::size_t write_as_message = 0;  // bytes
    bool arrives_in_progress = false;
    bool writes_silently = false;
    std::string protocol = "fake";
    unsigned plane = 0;
    int alarm = -1;  // PE 0's
    std::function<void(int pe)> on_progress;

private:
    friend class FakeWire;
    struct Item {
        bool message;
        std::function<void()> arrive;
        network::WireContext* context = nullptr;  // of messages that are not announced before they arrive
    };
    // One lane from one PE to another. With ordered delivery, writes and messages share one queue; otherwise writes
    // have an unordered one.
    using Lane = std::tuple<int, int, std::uint32_t, bool>;

    [[nodiscard]] bool in_order() const {
        return delivery_ == network::Delivery::in_order || delivery_ == network::Delivery::in_order_on_completion;
    }
    Code add(int from, network::LaneId to, bool message, std::function<void()> arrive,
             network::WireContext* context = nullptr) {
        auto& lane = lanes_[{from, to.pe, to.lane, message && !in_order()}];
        if (lane.size() >= room) return Code::again;
        if (!cut) lane.push_back({message, std::move(arrive), context});
        return Code::ok;
    }
    // Nothing of it arrives any more; who waits for it.
    std::vector<network::WireContext*> drop(int from, int to) {
        std::vector<network::WireContext*> out;
        for (auto& [pair, lane] : lanes_) {
            if (std::get<0>(pair) != from || std::get<1>(pair) != to) continue;
            for (const Item& item : lane)
                if (item.context != nullptr) out.push_back(item.context);
            lane.clear();
        }
        return out;
    }

    std::recursive_mutex lock_;
    std::vector<FakeWire*> wires_;
    network::Delivery delivery_;
    std::mt19937 random_;
    std::map<Lane, std::deque<Item>> lanes_;
};

class FakeWire final : public network::Wire {
public:
    FakeWire(FakeNetwork& network, int pe) : network_(network), pe_(pe) {
        traits_ = {"fake wire", network.protocol,       network.delivery_,     8,
                   256,         network.native_atomics, network.native_atomics};
        traits_.write_as_message_bytes = network.write_as_message;
        traits_.arrives_in_progress = network.arrives_in_progress;
        traits_.writes_silently = network.writes_silently;
        // Behaves as RDMA queue pairs do.
        if (network.delivery_ == network::Delivery::in_order_on_completion) traits_.signals = 1U << NPUSHMEM_SIGNAL_SET;
        network_.wires_[static_cast<std::size_t>(pe)] = this;
    }
    ~FakeWire() override {
        const std::lock_guard guard(network_.lock_);
        network_.wires_[static_cast<std::size_t>(pe_)] = nullptr;
        for (auto& [lane, items] : network_.lanes_) {
            if (std::get<1>(lane) == pe_) items.clear();
            if (std::get<0>(lane) == pe_) std::erase_if(items, [](const auto& item) { return !item.message; });
        }
    }
    // The PE, its rail, and the plane, which cannot be left.
    Result<Bytes> address() override {
        return Bytes{static_cast<std::byte>(pe_), static_cast<std::byte>(rail), static_cast<std::byte>(network_.plane),
                     std::byte{0}};
    }
    [[nodiscard]] network::Port port() const override {
        return {{rail, false, {}}, "plane " + std::to_string(network_.plane)};
    }
    [[nodiscard]] Result<network::Port> port_of(std::span<const std::byte> address) const override {
        const auto number = [&](std::size_t at) { return std::to_integer<unsigned>(address[at]); };
        if (address.size() != 4 || number(3) != 0) return Status{Code::protocol, "not an address of the fake wire"};
        return network::Port{{number(1), false, {}}, "plane " + std::to_string(number(2))};
    }
    Status add_peer(int pe, std::span<const std::byte> address) override {
        const network::Wire* const self = this;
        const network::PeerPorts peer{pe, address, 4};
        const auto pairs = network::pair_ports(pe_, std::span(&self, 1), peer);
        if (!pairs.ok()) return pairs.status();
        linked.push_back(pairs.value().front().text);
        const auto chosen = peer.address(pairs.value().front().theirs);
        if (std::to_integer<unsigned>(chosen[2]) == network_.plane) return {};
        return {Code::unreachable, pairs.value().front().text};
    }
    void start_probe(int pe) override { probed.insert(pe); }
    [[nodiscard]] bool end_probe(int pe) override { return probed.erase(pe) > 0 && network_.refuses_connections; }
    Result<network::WireMemory> register_memory(void*, std::uint64_t) override {
        return network::WireMemory{1, Bytes(8)};
    }
    void deregister_memory(std::uint64_t) override {}
    Result<std::uint64_t> import_key(int, std::span<const std::byte>) override { return std::uint64_t{7}; }
    void release_key(std::uint64_t) override {}

    Code write(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
               network::WireContext& context) override {
        const std::lock_guard guard(network_.lock_);
        const auto* data = static_cast<const std::byte*>(from);
        const bool told_at_arrival = completion_means_delivery();
        auto copy = std::make_shared<Bytes>(data, data + bytes);
        const Code added = post(
            to.lane_id,
            [this, to, copy, &context, told_at_arrival] {
                std::memcpy(reinterpret_cast<void*>(to.base + to.offset), copy->data(), copy->size());
                if (told_at_arrival) completions_.push_back(&context);
            },
            told_at_arrival ? &context : nullptr);
        if (added == Code::ok) bytes_written += bytes;
        if (added == Code::ok && !told_at_arrival) completions_.push_back(&context);
        return added;
    }
    Code read(const network::RemoteAddress& from, void* to, std::uint64_t bytes,
              network::WireContext& context) override {
        const std::lock_guard guard(network_.lock_);
        return post(
            from.lane_id,
            [this, from, to, bytes, &context] {
                std::memcpy(to, reinterpret_cast<const void*>(from.base + from.offset), bytes);
                completions_.push_back(&context);
            },
            &context);
    }
    Code atomic(const network::RemoteAddress& at, const npushmem_atomic& op, network::WireContext& context) override {
        const std::lock_guard guard(network_.lock_);
        ++native_atomics_used;
        return post(
            at.lane_id,
            [this, at, op, &context] {
                (void)apply_atomic_at(at, op);
                completions_.push_back(&context);
            },
            &context);
    }
    Code write_signal(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
                      const network::RemoteAddress& at, std::uint64_t signal, network::WireContext& context) override {
        const std::lock_guard guard(network_.lock_);
        const auto* data = static_cast<const std::byte*>(from);
        auto copy = std::make_shared<Bytes>(data, data + bytes);
        return post(
            to.lane_id,
            [this, to, at, signal, copy, &context] {
                std::memcpy(reinterpret_cast<void*>(to.base + to.offset), copy->data(), copy->size());
                std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at.base + at.offset))
                    .store(signal, std::memory_order_release);  // pairs with the test's loads of words
                completions_.push_back(&context);
            },
            &context);
    }
    Code flush(network::LaneId lane_id, network::WireContext& context) override {
        const std::lock_guard guard(network_.lock_);
        flushes_.push_back({lane_id, &context});
        return Code::ok;
    }
    Code send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) override {
        const std::lock_guard guard(network_.lock_);
        if (refuse == lane_id) return Code::range;
        auto message = std::make_shared<Bytes>(head.begin(), head.end());
        message->insert(message->end(), rest.begin(), rest.end());
        // A message arrives also when its sender is gone.
        return network_.add(pe_, lane_id, true, [&network = network_, pe = lane_id.pe, message] {
            if (FakeWire* target = network.wires_[static_cast<std::size_t>(pe)]) target->inbox_.push_back(*message);
        });
    }
    bool progress(network::WireListener& listener) override {
        const std::lock_guard guard(network_.lock_);
        if (!has_memory) throw std::bad_alloc();
        if (network_.on_progress) network_.on_progress(pe_);
        if (steps_in_progress) (void)network_.step();
        complete_flushes();
        const auto completions = std::exchange(completions_, {});
        const auto inbox = std::exchange(inbox_, {});
        for (auto* context : completions) listener.completed(*context, fail_with, "the test made the fake wire fail");
        for (auto* context : std::exchange(given_up_, {}))
            listener.completed(*context, Code::peer_dead, "the peer has been given up");
        for (const Bytes& message : inbox) listener.arrived(message);
        if (lose >= 0) listener.lost({std::exchange(lose, -1)}, Code::peer_dead, "connection reset");
        if (end >= 0) listener.closed(std::exchange(end, -1));
        if (lose_lane) listener.lost(*std::exchange(lose_lane, {}), Code::range, "the lane stopped");
        return !completions.empty() || !inbox.empty() || always_busy;
    }
    void forget(int pe) override {
        const std::lock_guard guard(network_.lock_);
        if (keeps_forgotten) return;
        const auto dropped = network_.drop(pe_, pe);
        given_up_.insert(given_up_.end(), dropped.begin(), dropped.end());
    }
    void close(network::LaneId lane_id) override { closed.push_back(lane_id); }
    bool prepare_to_wait(network::WakeEvents what) override {
        const std::lock_guard guard(network_.lock_);
        wake_events_.push_back(what);
        return !always_busy;
    }
    // The events of all calls of prepare_to_wait().
    std::vector<network::WakeEvents> wake_events_so_far() {
        const std::lock_guard guard(network_.lock_);
        return wake_events_;
    }
    network::Readiness readiness(network::LaneId) override { return ready; }
    [[nodiscard]] int alarm() const override { return pe_ == 0 ? network_.alarm : -1; }
    void handle_messages_in_order() { traits_.messages_in_order = true; }

    unsigned rail = 0;                     // before its address is asked for
    std::vector<std::string> linked;       // the pairs
    bool keeps_forgotten = false;          // forget changes nothing, as with libraries that cannot cancel
    bool steps_in_progress = false;        // each progress also delivers something
    bool has_memory = true;                // false: progress cannot allocate
    std::atomic<bool> always_busy{false};  // there is always more to do
    Code fail_with = Code::ok;             // every completion from now on
    int lose = -1;                         // the connection to this PE breaks
    int end = -1;                          // this PE has closed its transport
    std::optional<network::LaneId> lose_lane;
    std::optional<network::LaneId> refuse;  // no message leaves on this lane: an error, not for want of room
    std::vector<network::LaneId> closed;
    std::set<int> probed;
    std::vector<network::LaneId> used;  // for transfers, each once
    int native_atomics_used = 0;
    std::uint64_t bytes_written = 0;
    network::Readiness ready = network::Readiness::ready;

private:
    [[nodiscard]] bool completion_means_delivery() const {
        return traits_.delivery == network::Delivery::on_completion ||
               traits_.delivery == network::Delivery::in_order_on_completion;
    }
    static Code apply_atomic_at(const network::RemoteAddress& at, const npushmem_atomic& op);

    Code post(network::LaneId lane_id, std::function<void()> arrive, network::WireContext* context) {
        if (std::find(used.begin(), used.end(), lane_id) == used.end()) used.push_back(lane_id);
        return network_.add(pe_, lane_id, false, std::move(arrive), context);
    }

    // A flush is complete when no write on the lane is in flight.
    void complete_flushes() {
        std::erase_if(flushes_, [this](const auto& flush) {
            if (!network_.lanes_[{pe_, flush.first.pe, flush.first.lane, false}].empty()) return false;
            completions_.push_back(flush.second);
            return true;
        });
    }

    FakeNetwork& network_;
    int pe_;
    std::vector<network::WireContext*> completions_;
    std::vector<network::WireContext*> given_up_;
    std::vector<Bytes> inbox_;
    std::vector<network::WakeEvents> wake_events_;
    std::vector<std::pair<network::LaneId, network::WireContext*>> flushes_;
};

inline Code FakeWire::apply_atomic_at(const network::RemoteAddress& at, const npushmem_atomic& op) {
    return apply_atomic(reinterpret_cast<void*>(at.base + at.offset), op);
}

inline std::unique_ptr<network::Wire> FakeNetwork::make_wire(int pe) { return std::make_unique<FakeWire>(*this, pe); }

}  // namespace npushmem::fakes
