// SPDX-License-Identifier: BSD-3-Clause
// Two wires over fake devices, and their events.
#pragma once

#include <gmock/gmock.h>
#include <poll.h>

#include <array>
#include <functional>
#include <map>

#include "tests/unit/transports/verbs/fake_verbs.hpp"
#include "transports/verbs/verbs_wire.hpp"

namespace npushmem::verbs::test {

using fakes::FakeVerbs;
using network::RemoteAddress;
using network::WireContext;

// Records the events of a wire.
class RecordingListener final : public network::WireListener {
public:
    void completed(WireContext& context, Code code, const std::string& why) override {
        done[&context] = code;
        if (code != Code::ok) whys.push_back(why);
    }
    void arrived(std::span<const std::byte> message) override { messages.emplace_back(message.begin(), message.end()); }
    void lost(network::LaneId lane_id, Code code, const std::string& why) override {
        losses.push_back({lane_id.pe, code, why, lane_id.lane});
    }

    struct Loss {
        int pe;
        Code code;
        std::string why;
        std::uint32_t lane;
    };
    std::map<WireContext*, Code> done;
    std::vector<Bytes> messages;
    std::vector<Loss> losses;
    std::vector<std::string> whys;
};

// True when a thread that waits for the wire would wake up.
inline bool wakes(const network::Wire& wire) {
    pollfd wanted{wire.descriptor(), POLLIN, 0};
    return ::poll(&wanted, 1, 0) == 1;
}

inline constexpr std::size_t words_per_pe = 4096;

// Two PEs on one or two fake devices. The test advances the time.
class World {
public:
    World() : verbs(std::make_shared<FakeVerbs>()) { settings.chunk_bytes = 4096; }

    Result<std::unique_ptr<VerbsWire>> open(int pe) {
        return VerbsWire::open(verbs, settings, {pe, 2, pe}, [this] { return now; });
    }
    // Calls `prepare` for each wire before it is opened.
    void start(const std::function<void(VerbsWire&)>& prepare = [](VerbsWire&) {}) {
        if (verbs->objects() == 0 && devices == 0) add_devices(1);
        std::array<Bytes, 2> addresses;
        for (int pe = 0; pe < 2; ++pe) {
            auto opened = open(pe);
            ASSERT_TRUE(opened.ok()) << opened.status().message();
            wires[index(pe)] = std::move(opened).value();
            prepare(at(pe));
            auto address = at(pe).address();
            ASSERT_TRUE(address.ok()) << address.status().message();
            addresses[index(pe)] = std::move(address).value();
        }
        for (int pe = 0; pe < 2; ++pe) {
            ASSERT_TRUE(at(pe).add_peer(1 - pe, addresses[index(1 - pe)]).ok());
            auto memory = at(pe).register_memory(words[index(pe)].data(), sizeof words[0]);
            ASSERT_TRUE(memory.ok());
            number[index(pe)] = memory.value().number;
            keys[index(1 - pe)] = at(1 - pe).import_key(pe, memory.value().key).value();
        }
    }
    void add_devices(int count) {
        for (; count > 0; --count) verbs->add_device("fake" + std::to_string(devices++));
    }

    static std::size_t index(int pe) { return static_cast<std::size_t>(pe); }
    VerbsWire& at(int pe) { return *wires[index(pe)]; }
    // A place in the other PE's memory, as `pe` addresses it.
    RemoteAddress place(int pe, std::size_t word, std::uint32_t lane = 0) {
        return {
            {1 - pe, lane}, keys[index(pe)], reinterpret_cast<std::uintptr_t>(words[index(1 - pe)].data()), word * 8};
    }
    void drive(int rounds = 30) {
        for (; rounds > 0; --rounds) {
            (void)at(0).progress(listeners[0]);
            (void)at(1).progress(listeners[1]);
        }
    }
    // Repeats the call until it is posted.
    Code retry_until_posted(const std::function<Code()>& call) {
        for (int i = 0; i < 200; ++i) {
            const Code code = call();
            if (code != Code::again) return code;
            drive(1);
        }
        return Code::timeout;
    }
    Code write(int pe, std::size_t word, const void* from, std::size_t bytes, WireContext& context,
               std::uint32_t lane = 0) {
        return retry_until_posted([&] { return at(pe).write(place(pe, word, lane), from, bytes, context); });
    }
    // The first PE writes over the lane; waits until the second has received it.
    void write_over(std::uint32_t lane, std::size_t word, std::uint64_t value) {
        WireContext context;
        ASSERT_EQ(write(0, word, &value, sizeof value, context, lane), Code::ok) << at(0).last_error();
        drive();
        EXPECT_EQ(listeners[0].done.at(&context), Code::ok);
        listeners[0].done.erase(&context);
        EXPECT_EQ(words[1][word], value);
    }
    void connect() {
        WireContext context;
        const std::uint64_t value = 1;
        ASSERT_EQ(write(0, 0, &value, sizeof value, context), Code::ok);
        drive();
        ASSERT_THAT(listeners[0].losses, ::testing::IsEmpty());
    }

    std::shared_ptr<FakeVerbs> verbs;
    VerbsSettings settings;
    std::chrono::steady_clock::time_point now{};
    int devices = 0;
    std::array<std::array<std::uint64_t, words_per_pe>, 2> words{};
    std::array<std::uint64_t, 2> number{};
    std::array<std::uint64_t, 2> keys{};
    std::array<RecordingListener, 2> listeners;
    std::array<std::unique_ptr<VerbsWire>, 2> wires;  // last: go before what they touch
};

inline npushmem_atomic atomic_op(std::uint8_t operation, std::uint64_t operand, std::uint64_t compare, void* result) {
    npushmem_atomic op{};
    op.operation = operation;
    op.width = 8;
    op.operand = operand;
    op.compare = compare;
    op.result = result;
    return op;
}

}  // namespace npushmem::verbs::test
