// SPDX-License-Identifier: BSD-3-Clause
// Two connected wires of one kind, over a real network library and the loopback interface.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "transports/network/wire.hpp"

namespace npushmem::fakes {

// Records the events of a wire.
struct RecordingListener : network::WireListener {
    void completed(network::WireContext& context, Code code, const std::string& /*why*/) override {
        completions.emplace_back(&context, code);
    }
    void arrived(std::span<const std::byte> message) override { messages.emplace_back(message.begin(), message.end()); }
    void lost(network::LaneId lane_id, Code /*code*/, const std::string& why) override {
        losses.emplace_back(lane_id, why);
    }
    void closed(int pe) override { closed_peers.push_back(pe); }

    std::vector<std::pair<network::WireContext*, Code>> completions;
    std::vector<Bytes> messages;
    std::vector<std::pair<network::LaneId, std::string>> losses;
    std::vector<int> closed_peers;
};

class WirePair {
public:
    using Open = std::function<Result<std::unique_ptr<network::Wire>>()>;

    // The first wire has the address and the memory of the second.
    explicit WirePair(const Open& open) {
        for (auto& wire : wires) {
            auto opened = open();
            if (!opened.ok()) throw std::runtime_error(opened.status().message());
            wire = std::move(opened).value();
        }
        const auto memory = wires[1]->register_memory(words.data(), sizeof words);
        const Status linked = wires[0]->add_peer(1, wires[1]->address().value());
        if (!memory.ok() || !linked.ok()) throw std::runtime_error(memory.status().message() + linked.message());
        key = wires[0]->import_key(1, memory.value().key).value();
    }

    [[nodiscard]] network::RemoteAddress place(std::uint32_t lane, std::size_t word) const {
        return {{1, lane}, key, reinterpret_cast<std::uintptr_t>(words.data()), word * sizeof words[0]};
    }
    // Both wires make progress until the condition holds.
    bool until(const std::function<bool()>& holds) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        bool held = holds();
        for (; !held && std::chrono::steady_clock::now() < deadline; held = holds()) drive();
        return held;
    }
    // Repeats the call until there is room.
    Code retry_until_posted(const std::function<Code()>& call) {
        Code code = Code::again;
        (void)until([&] { return (code = call()) != Code::again; });
        return code;
    }
    // Closes while the other wire makes progress, as another process would.
    void close(network::LaneId lane_id) {
        std::atomic<bool> closed{false};
        std::thread other([&] {
            while (!closed.load(std::memory_order_acquire)) (void)wires[1]->progress(notes[1]);
        });
        wires[0]->close(lane_id);
        closed.store(true, std::memory_order_release);  // pairs with the load above
        other.join();
    }
    void drive() {
        for (std::size_t i = 0; i < wires.size(); ++i) (void)wires[i]->progress(notes[i]);
    }

    std::array<std::uint64_t, 8> words{};
    std::array<RecordingListener, 2> notes;
    std::array<std::unique_ptr<network::Wire>, 2> wires;  // go first
    std::uint64_t key = 0;
};

// A lane carries messages and transfers. A closed lane can be used again, while another lane continues.
inline void lanes_can_be_reopened(WirePair& pair) {
    constexpr std::uint32_t lane = 3;
    for (std::uint64_t round = 1; round <= 2; ++round) {
        const Bytes message(8, static_cast<std::byte>(round));
        network::WireContext context;
        std::uint64_t value = round;
        for (const std::uint32_t over : {0U, lane}) {
            ASSERT_EQ(pair.retry_until_posted([&] {
                return pair.wires[0]->send({1, over}, message, {});
            }),
                      Code::ok)
                << pair.wires[0]->last_error();
            ASSERT_EQ(pair.retry_until_posted(
                          [&] { return pair.wires[0]->write(pair.place(over, over), &value, sizeof value, context); }),
                      Code::ok)
                << pair.wires[0]->last_error();
            ASSERT_TRUE(pair.until([&] { return !pair.notes[0].completions.empty(); }));
            EXPECT_EQ(pair.notes[0].completions, std::vector({std::pair(&context, Code::ok)}));
            pair.notes[0].completions.clear();
            EXPECT_TRUE(
                pair.until([&] { return std::atomic_ref(pair.words[over]).load(std::memory_order_relaxed) == round; }));
        }
        ASSERT_TRUE(pair.until([&] { return pair.notes[1].messages.size() == 2; }));
        EXPECT_EQ(pair.notes[1].messages, std::vector({message, message}));
        pair.notes[1].messages.clear();
        pair.close({1, lane});
        pair.close({1, lane});      // nothing is there to close
        pair.close({1, lane + 7});  // nor was there ever
    }
    EXPECT_TRUE(pair.notes[0].losses.empty());
}

// Each 64-bit atomic that the wire lists changes its word as the table says, and no other word.
inline void atomics_are_done(WirePair& pair) {
    struct Case {
        int operation;
        std::uint64_t before, operand, compare, after;
        bool fetches;
    };
    constexpr std::array cases{Case{NPUSHMEM_ATOMIC_FETCH, 7, 5, 0, 7, true},
                               Case{NPUSHMEM_ATOMIC_SET, 7, 5, 0, 5, false},
                               Case{NPUSHMEM_ATOMIC_ADD, ~0ULL, 3, 0, 2, false},
                               Case{NPUSHMEM_ATOMIC_AND, 0xff00ff00ff00ff00, 0xf, 0, 0, false},
                               Case{NPUSHMEM_ATOMIC_OR, 0xf000000000000000, 0xf, 0, 0xf00000000000000f, false},
                               Case{NPUSHMEM_ATOMIC_XOR, 6, 3, 0, 5, false},
                               Case{NPUSHMEM_ATOMIC_SWAP, 1ULL << 63, 9, 0, 9, true},
                               Case{NPUSHMEM_ATOMIC_COMPARE_SWAP, 7, 9, 7, 9, true},
                               Case{NPUSHMEM_ATOMIC_COMPARE_SWAP, 7, 9, 8, 7, true},
                               Case{NPUSHMEM_ATOMIC_FETCH_ADD, 7, 5, 0, 12, true},
                               Case{NPUSHMEM_ATOMIC_FETCH_AND, 6, 3, 0, 2, true},
                               Case{NPUSHMEM_ATOMIC_FETCH_OR, 6, 3, 0, 7, true},
                               Case{NPUSHMEM_ATOMIC_FETCH_XOR, 6, 3, 0, 5, true}};
    const std::uint32_t listed = pair.wires[0]->traits().atomic_64;
    ASSERT_NE(listed, 0U);
    for (const std::uint32_t over : {0U, 2U})
        for (const Case& one : cases) {
            if ((listed >> one.operation & 1U) == 0) continue;
            SCOPED_TRACE(one.operation);
            pair.words = {1, one.before, 3};
            std::uint64_t result = 0;
            npushmem_atomic op{};
            op.pe = 1;
            op.operation = static_cast<std::uint8_t>(one.operation);
            op.width = sizeof one.operand;
            op.operand = one.operand;
            op.compare = one.compare;
            op.result = one.fetches ? &result : nullptr;
            network::WireContext context;
            ASSERT_EQ(pair.retry_until_posted([&] { return pair.wires[0]->atomic(pair.place(over, 1), op, context); }),
                      Code::ok)
                << pair.wires[0]->last_error();
            ASSERT_TRUE(pair.until([&] { return !pair.notes[0].completions.empty(); }));
            EXPECT_EQ(pair.notes[0].completions, std::vector({std::pair(&context, Code::ok)}));
            pair.notes[0].completions.clear();
            EXPECT_TRUE(pair.until(
                [&] { return std::atomic_ref(pair.words[1]).load(std::memory_order_relaxed) == one.after; }));
            EXPECT_EQ(result, one.fetches ? one.before : 0U);
            EXPECT_EQ(pair.words[0] + pair.words[2], 4U);
        }
}

}  // namespace npushmem::fakes
