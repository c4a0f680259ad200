// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/tcp_wire.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/unit/transports/tcp/tcp_wires.hpp"

namespace npushmem::tcp {
namespace {

using network::WireContext;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

TEST_F(TcpWires, HaveAConnectionForEachLane) { fakes::lanes_can_be_reopened(pair); }

TEST_F(TcpWires, CarryWritesAndReadsOfAnySize) {
    std::vector<std::byte> memory(much);
    const network::RemoteAddress place = place_in(memory);
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{64}, std::size_t{65},
                                    std::size_t{4096}, std::size_t{4097}, std::size_t{262145}, much}) {
        std::vector<std::byte> data(bytes);
        for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + bytes);
        WireContext written;
        ASSERT_EQ(write(place, data, written), Code::ok);
        ASSERT_TRUE(completes()) << bytes;
        std::vector<std::byte> back(bytes);
        WireContext got;
        ASSERT_EQ(read(place, back, got), Code::ok);
        ASSERT_TRUE(completes(2)) << bytes;
        EXPECT_THAT(pair.notes[0].completions, ElementsAre(Pair(&written, Code::ok), Pair(&got, Code::ok)));
        EXPECT_TRUE(back == data) << bytes;
        EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin())) << bytes;
        pair.notes[0].completions.clear();
    }
    EXPECT_THAT(pair.notes[0].losses, IsEmpty());
}

TEST_F(TcpWires, SetTheSignalBehindItsData) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{4096}, much}) {
        std::vector<std::byte> memory(std::max<std::size_t>(bytes, 1));
        const network::RemoteAddress place = place_in(memory);
        const std::vector<std::byte> data(bytes, std::byte{9});
        WireContext context;
        pair.words[3] = 0;
        ASSERT_EQ(pair.retry_until_posted([&] {
            return pair.wires[0]->write_signal(place, data.data(), bytes, pair.place(0, 3), 77, context);
        }),
                  Code::ok);
        const auto signal = [&] { return std::atomic_ref(pair.words[3]).load(std::memory_order_acquire); };
        ASSERT_TRUE(pair.until([&] { return signal() != 0; })) << bytes;
        EXPECT_EQ(signal(), 77U);
        EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin())) << bytes;
        ASSERT_TRUE(completes());
        pair.notes[0].completions.clear();
    }
}

TEST_F(TcpWires, KeepTheOrderOfMessagesAndWrites) {
    constexpr std::uint64_t rounds = 2000;
    WireContext context;
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        ASSERT_EQ(write(pair.place(0, 0), std::as_bytes(std::span(&round, 1)), context), Code::ok);
        ASSERT_EQ(pair.retry_until_posted([&] {
            return pair.wires[0]->send({1, 0}, std::as_bytes(std::span(&round, 1)), {});
        }),
                  Code::ok);
    }
    ASSERT_TRUE(pair.until([&] { return pair.notes[1].messages.size() == rounds; }));
    EXPECT_EQ(pair.words[0], rounds);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        std::uint64_t got = 0;
        std::memcpy(&got, pair.notes[1].messages[round - 1].data(), sizeof got);
        ASSERT_EQ(got, round);
    }
}

// The peer makes no progress.
TEST_F(TcpWires, AcceptALimitedNumberOfFramesForAPeerThatReceivesNothing) {
    const Bytes message(2048, std::byte{1});
    int accepted = 0;
    Code code = Code::ok;
    for (int i = 0; i < 100'000 && code == Code::ok; ++i) {
        code = pair.wires[0]->send({1, 0}, message, {});
        if (code == Code::ok) ++accepted;
        (void)pair.wires[0]->progress(pair.notes[0]);
    }
    ASSERT_EQ(code, Code::again);
    EXPECT_TRUE(pair.wires[0]->has_unsent_messages());
    ASSERT_TRUE(pair.until([&] { return pair.notes[1].messages.size() == static_cast<std::size_t>(accepted); }));
    EXPECT_FALSE(pair.wires[0]->has_unsent_messages());
    EXPECT_EQ(pair.wires[0]->send({1, 0}, message, {}), Code::ok);
}

TEST_F(TcpWires, AShortWriteNeedsItsSourceNoLonger) {
    std::vector<std::byte> memory(much);
    const network::RemoteAddress place = place_in(memory);
    const std::vector<std::byte> first(much, std::byte{1});
    std::vector<WireContext> contexts(2);
    ASSERT_EQ(write(place, first, contexts[0]), Code::ok);  // occupies the connection
    std::uint64_t word = 5;
    ASSERT_LE(sizeof word, pair.wires[0]->traits().inject_bytes);
    ASSERT_EQ(pair.wires[0]->write(pair.place(0, 1), &word, sizeof word, contexts[1]), Code::ok);
    word = 6;
    ASSERT_TRUE(completes(2));
    ASSERT_TRUE(pair.until([&] { return std::atomic_ref(pair.words[1]).load(std::memory_order_relaxed) != 0; }));
    EXPECT_EQ(pair.words[1], 5U);
}

TEST_F(TcpWires, AReadOfUnknownMemoryFails) {
    network::RemoteAddress nowhere = pair.place(0, 0);
    std::uint64_t word = 3;
    WireContext context;
    for (const auto& [key, offset] : {std::pair<std::uint64_t, std::uint64_t>{pair.key + 1, 0}, {pair.key, 1U << 20}}) {
        nowhere.key = key;
        nowhere.offset = offset;
        ASSERT_EQ(read(nowhere, std::as_writable_bytes(std::span(&word, 1)), context), Code::ok);
        ASSERT_TRUE(completes());
        EXPECT_THAT(pair.notes[0].completions, ElementsAre(Pair(&context, Code::range)));
        pair.notes[0].completions.clear();
    }
    EXPECT_EQ(word, 3U);
    EXPECT_THAT(pair.notes[0].losses, IsEmpty());
}

TEST_F(TcpWires, AWriteToUnknownMemoryEndsTheLane) {
    network::RemoteAddress nowhere = pair.place(2, 0);
    ++nowhere.key;
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{50}}) {
        const std::vector<std::byte> data(bytes, std::byte{1});
        WireContext context;
        ASSERT_EQ(write(nowhere, data, context), Code::ok);
        ASSERT_EQ(write(pair.place(2, 1), data, context), Code::ok);  // later ones are dropped
        ASSERT_TRUE(pair.until([&] { return !pair.notes[0].losses.empty(); }));
        EXPECT_THAT(pair.notes[0].losses,
                    ElementsAre(Pair(network::LaneId{1, 2}, HasSubstr("it has refused " + std::to_string(bytes) +
                                                                      " bytes of a write at offset 0"))));
        pair.notes[0].losses.clear();
    }
    EXPECT_EQ(pair.words, (std::array<std::uint64_t, 8>{}));
}

// The owner may use the memory otherwise as soon as it has deregistered it.
TEST_F(TcpWires, DeregisteredMemoryIsNotAccessed) {
    auto memory = std::make_unique<std::vector<std::byte>>(much, std::byte{4});
    const network::RemoteAddress place = place_in(*memory);
    std::vector<std::byte> back(much);
    WireContext got;
    ASSERT_EQ(read(place, back, got), Code::ok);
    // Until the answer has begun.
    ASSERT_TRUE(pair.until([&] { return back.front() == std::byte{4}; }));
    ASSERT_THAT(pair.notes[0].completions, IsEmpty());
    pair.wires[1]->deregister_memory(number);
    memory.reset();
    ASSERT_TRUE(completes());
    EXPECT_TRUE(back == std::vector<std::byte>(much, std::byte{4}));
    pair.notes[0].completions.clear();

    memory = std::make_unique<std::vector<std::byte>>(much);
    const network::RemoteAddress next = place_in(*memory);
    WireContext written;
    ASSERT_EQ(write(next, back, written), Code::ok);
    ASSERT_TRUE(pair.until([&] { return memory->front() == std::byte{4}; }));
    pair.wires[1]->deregister_memory(number);
    memory.reset();
    ASSERT_TRUE(pair.until([&] { return !pair.notes[0].losses.empty(); }));
    EXPECT_THAT(pair.notes[0].losses, ElementsAre(Pair(network::LaneId{1, 0}, HasSubstr("it has refused"))));
}

TEST_F(TcpWires, WakeAThreadThatWaitsForAnArrival) {
    ASSERT_EQ(pair.retry_until_posted([&] { return pair.wires[0]->send({1, 0}, Bytes(8), {}); }), Code::ok);
    ASSERT_TRUE(pair.until([&] { return pair.notes[1].messages.size() == 1; }));
    ASSERT_TRUE(pair.until([&] { return pair.wires[1]->prepare_to_wait(network::WakeEvents::arrivals); }));
    Poller poller = Poller::open().value();
    ASSERT_TRUE(poller.watch(pair.wires[1]->descriptor(), 0).ok());
    EXPECT_THAT(poller.wait(0), IsEmpty());
    ASSERT_EQ(pair.wires[0]->send({1, 0}, Bytes(8), {}), Code::ok);
    EXPECT_THAT(poller.wait(30'000), SizeIs(1));
}

TEST(TcpWire, AnAddressThatThisHostLacksIsNamed) {
    const auto wire = TcpWire::open(Address::parse("192.0.2.1", 0).value(), 0, 2, 1);
    ASSERT_FALSE(wire.ok());
    EXPECT_THAT(wire.status().message(), AllOf(HasSubstr("192.0.2.1"), HasSubstr("Cannot assign")));
}

}  // namespace
}  // namespace npushmem::tcp
