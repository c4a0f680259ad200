// SPDX-License-Identifier: BSD-3-Clause
// The environment of NetworkTransport's tests.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/transports/network/fake_wire.hpp"
#include "transports/network/address_codec.hpp"
#include "transports/network/message_keys.hpp"
#include "transports/network/multi_rail_wire.hpp"

namespace npushmem::fakes {

constexpr std::size_t data_words = 64;  // more than fit into a message of the fake wire
constexpr std::size_t flag_word = data_words;

// Three PEs over one or several fake networks. The test drives them, unless it requests a thread.
class World {
public:
    static constexpr int npes = 3;

    explicit World(network::Delivery delivery, unsigned seed = 1, network::NetworkSettings settings = quiet_settings())
        : network(npes, delivery, seed), settings_(settings) {}

    static network::NetworkSettings quiet_settings() {
        network::NetworkSettings out;
        out.thread = false;
        out.max_goodbye = {};
        return out;
    }

    // `mutual`: every PE knows the others; otherwise only the first PE does.
    void start(bool mutual = true) {
        for (int pe = 0; pe < npes; ++pe) {
            auto wire = make_wire(pe);
            npushmem_transport_params params{};
            params.pe = pe;
            params.npes = npes;
            pes.push_back(
                std::make_unique<network::NetworkTransport>(Host(&host_, "fake"), params, std::move(wire), settings_));
        }
        for (int to = 0; to < npes; ++to) {
            npushmem_memory memory{};
            memory.base = words[static_cast<std::size_t>(to)].data();
            memory.bytes = sizeof words[0];
            const auto registered = pes[static_cast<std::size_t>(to)]->register_memory(memory);
            ASSERT_TRUE(registered.ok()) << registered.status().message();
            for (int from = 0; from < npes; ++from)
                if (from != to && (mutual || from == 0)) introduce(from, to, registered.value().handle);
        }
        for (int pe = 0; pe < npes; ++pe) queue[static_cast<std::size_t>(pe)] = at(pe).create_queue().value();
    }

    npushmem_peer peer(int pe, const Bytes& address) const {
        npushmem_peer out{};
        out.struct_size = sizeof out;
        out.pe = pe;
        out.address = address.data();
        out.address_bytes = static_cast<std::uint32_t>(address.size());
        out.host_name = "elsewhere";
        return out;
    }

    // The message as a PE of the job sends it to PE `to`.
    Bytes signed_message(int to, std::span<const std::byte> message) {
        const auto address = network::decode_address(at(to).address().value());
        const std::uint64_t tag = network::tag_of(address.value().key, message, {});
        Bytes out(message.begin(), message.end());
        std::memcpy(out.data() + offsetof(network::MessageHeader, tag), &tag, sizeof tag);
        return out;
    }

    // The lines that the transports have logged since the last call.
    std::vector<std::string> take_log() {
        const std::lock_guard guard(log_lock_);
        return std::exchange(log_, {});
    }

    network::NetworkTransport& at(int pe) { return *pes[static_cast<std::size_t>(pe)]; }
    std::uint64_t word(int pe, std::size_t index) {
        return std::atomic_ref(words[static_cast<std::size_t>(pe)][index]).load(std::memory_order_acquire);
    }
    npushmem_rma rma(int to, std::size_t index, void* local, std::size_t count) const {
        return {to, 0, remote.at({0, to}), index * 8, local, count * 8};
    }
    npushmem_atomic atomic(int to, std::uint8_t operation, std::size_t index, std::uint64_t operand) const {
        npushmem_atomic out{};
        out.pe = to;
        out.operation = operation;
        out.width = 8;
        out.remote = remote.at({0, to});
        out.offset = index * 8;
        out.operand = operand;
        return out;
    }

    // Before the start: PEs have one more port, as long as the test does not say otherwise of a PE.
    void add_rail(std::uint64_t stripe_bytes) {
        rails.push_back(std::make_unique<FakeNetwork>(npes, network.delivery(), 77));
        rails.back()->plane = static_cast<unsigned>(rails.size());
        stripe_bytes_ = stripe_bytes;
    }
    // The planes of a PE's ports, in the order in which the PE has them; the network's is 0. Ports then know their
    // rail.
    std::array<std::vector<std::size_t>, npes> planes;
    std::array<bool, npes> has_rails{true, true, true};

    // Delivers one item and lets all PEs make progress.
    void step() {
        const std::size_t chosen = ++steps_ * 2654435761U / 65536 % (rails.size() + 1);
        if (chosen == 0 || !rails[chosen - 1]->step())
            if (!network.step())
                for (auto& rail : rails) (void)rail->step();
        progress();
    }
    void progress() {
        for (auto& pe : pes)
            if (pe) (void)pe->progress();
    }
    // Until nothing can arrive.
    void deliver() {
        const auto step_any = [this] {
            bool stepped = network.step();
            for (auto& rail : rails) stepped = rail->step() || stepped;
            return stepped;
        };
        while (step_any()) progress();
        progress();
    }
    // Repeats the call while it returns Code::again. Calls `watch` after every step.
    Code finish(
        const std::function<Code()>& call, const std::function<void()>& watch = [] {}) {
        for (int i = 0; i < 100'000; ++i) {
            const Code code = call();
            watch();
            if (code != Code::again) return code;
            step();
            watch();
        }
        return Code::timeout;
    }
    Code put(int to, std::uint64_t& value) {
        return finish([&] { return at(0).put(queue[0], rma(to, 0, &value, 1), nullptr); });
    }
    Code quiet() {
        return finish([this] { return at(0).quiet(queue[0]); });
    }

    FakeNetwork network;
    std::vector<std::unique_ptr<FakeNetwork>> rails;  // beside it
    std::vector<std::unique_ptr<network::NetworkTransport>> pes;
    std::vector<FakeWire*> wires;                    // over the first network
    std::vector<std::vector<FakeWire*>> more_wires;  // of each PE, over the others, or all in the order of `planes`
    std::array<std::uint64_t, npes> queue{};
    std::map<std::pair<int, int>, std::uint64_t> remote;
    std::array<std::array<std::uint64_t, 128>, npes> words{};

private:
    std::unique_ptr<network::Wire> make_wire(int pe) {
        if (!planes[static_cast<std::size_t>(pe)].empty()) return make_rails(pe);
        auto first = network.make_wire(pe);
        wires.push_back(static_cast<FakeWire*>(first.get()));
        more_wires.emplace_back();
        if (rails.empty() || !has_rails[static_cast<std::size_t>(pe)]) return first;
        std::vector<network::MultiRailWire::Rail> all;
        all.push_back({std::move(first), 0});
        for (auto& rail : rails) {
            auto made = rail->make_wire(pe);
            more_wires.back().push_back(static_cast<FakeWire*>(made.get()));
            all.push_back({std::move(made), 0});
        }
        return std::make_unique<network::MultiRailWire>(pe, std::move(all), stripe_bytes_);
    }
    std::unique_ptr<network::Wire> make_rails(int pe) {
        std::vector<network::MultiRailWire::Rail> all;
        more_wires.emplace_back();
        for (const std::size_t plane : planes[static_cast<std::size_t>(pe)]) {
            auto made = (plane == 0 ? network : *rails[plane - 1]).make_wire(pe);
            auto* const fake = static_cast<FakeWire*>(made.get());
            fake->rail = static_cast<unsigned>(plane);
            more_wires.back().push_back(fake);
            all.push_back({std::move(made), 0});
        }
        wires.push_back(more_wires.back().front());
        if (all.size() == 1) return std::move(all.front().wire);
        return std::make_unique<network::MultiRailWire>(pe, std::move(all), stripe_bytes_);
    }
    void introduce(int from, int to, const Bytes& handle) {
        const Bytes address = at(to).address().value();
        ASSERT_TRUE(at(from).reach(peer(to, address)).reachable());
        const Status connected = at(from).connect(peer(to, address));
        ASSERT_TRUE(connected.ok()) << connected.message();
        remote[{from, to}] = at(from).import_memory(to, handle).value();
    }

    static void append_to_log(void* world, std::int32_t /*level*/, const char* /*subsystem*/, const char* message) {
        auto& self = *static_cast<World*>(world);
        const std::lock_guard guard(self.log_lock_);
        self.log_.emplace_back(message);
    }

    npushmem_host host_{sizeof host_, 1, 0, this, &append_to_log, nullptr};
    std::mutex log_lock_;
    std::vector<std::string> log_;
    network::NetworkSettings settings_;
    std::uint64_t stripe_bytes_ = 0;
    std::uint32_t steps_ = 0;
};

}  // namespace npushmem::fakes
