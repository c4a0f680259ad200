// SPDX-License-Identifier: BSD-3-Clause
// Two TCP wires in one process, which connect over the loopback interface.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/fakes/open_descriptors.hpp"
#include "tests/unit/transports/network/wire_pair.hpp"
#include "transports/tcp/tcp_wire.hpp"

namespace npushmem::tcp {

inline Address loopback() { return Address::parse("127.0.0.1", 0).value(); }

inline fakes::WirePair::Open open_in_turn(std::chrono::microseconds max_gap = TcpWire::usual_gap) {
    return [max_gap, pe = 0]() mutable { return TcpWire::open(loopback(), pe++, 2, 1, max_gap); };
}

// More than the sockets of both sides take.
inline constexpr std::size_t much = std::size_t{32} << 20;

class TcpWires : public ::testing::Test {
protected:
    explicit TcpWires(std::chrono::microseconds max_gap = TcpWire::usual_gap) : pair(open_in_turn(max_gap)) {}

    // A place in more memory of PE 1.
    network::RemoteAddress place_in(std::vector<std::byte>& memory) {
        const auto registered = pair.wires[1]->register_memory(memory.data(), memory.size());
        number = registered.value().number;
        return {{1, 0},
                pair.wires[0]->import_key(1, registered.value().key).value(),
                reinterpret_cast<std::uintptr_t>(memory.data()),
                0};
    }
    [[nodiscard]] Code write(const network::RemoteAddress& to, std::span<const std::byte> data,
                             network::WireContext& context) {
        return pair.retry_until_posted([&] { return pair.wires[0]->write(to, data.data(), data.size(), context); });
    }
    [[nodiscard]] Code read(const network::RemoteAddress& from, std::span<std::byte> to,
                            network::WireContext& context) {
        return pair.retry_until_posted([&] { return pair.wires[0]->read(from, to.data(), to.size(), context); });
    }
    [[nodiscard]] bool completes(std::size_t operations = 1) {
        return pair.until([&] { return pair.notes[0].completions.size() >= operations; });
    }

    // The first wire alone makes progress until the condition holds.
    [[nodiscard]] bool alone_until(const std::function<bool()>& holds) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!holds() && std::chrono::steady_clock::now() < deadline) (void)pair.wires[0]->progress(pair.notes[0]);
        return holds();
    }
    // PE 0 has sent PE 1 a message, which has arrived.
    void connect() {
        ASSERT_EQ(pair.retry_until_posted([&] { return pair.wires[0]->send({1, 0}, Bytes(8), {}); }), Code::ok);
        ASSERT_TRUE(pair.until([&] { return !pair.notes[1].messages.empty(); }));
        pair.notes[1].messages.clear();
    }

    // PE 1 has the address and the memory of PE 0, too.
    void connect_back() {
        const auto memory = pair.wires[0]->register_memory(words_of_pe_0.data(), sizeof words_of_pe_0);
        ASSERT_TRUE(pair.wires[1]->add_peer(0, pair.wires[0]->address().value()).ok());
        key_of_pe_0 = pair.wires[1]->import_key(0, memory.value().key).value();
    }
    [[nodiscard]] network::RemoteAddress place_of_pe_0(std::size_t word) const {
        return {{0, 0},
                key_of_pe_0,
                reinterpret_cast<std::uintptr_t>(words_of_pe_0.data()),
                word * sizeof words_of_pe_0[0]};
    }

    std::array<std::uint64_t, 8> words_of_pe_0{11, 12};
    std::uint64_t key_of_pe_0 = 0;
    fakes::WirePair pair;
    std::uint64_t number = 0;
    std::size_t descriptors = open_descriptors();
};

}  // namespace npushmem::tcp
