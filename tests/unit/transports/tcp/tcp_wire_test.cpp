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

// A data segment of one direction acknowledges those of the other.
TEST_F(TcpWires, BothPesUseOneConnection) {
    connect();
    connect_back();
    const std::size_t connected = open_descriptors();
    ASSERT_EQ(pair.wires[1]->send({0, 0}, Bytes(8, std::byte{2}), {}), Code::ok);
    ASSERT_TRUE(pair.until([&] { return !pair.notes[0].messages.empty(); }));
    EXPECT_THAT(pair.notes[0].messages, ElementsAre(Bytes(8, std::byte{2})));
    std::uint64_t word = 0;
    WireContext got;
    ASSERT_EQ(pair.wires[1]->read(place_of_pe_0(0), &word, sizeof word, got), Code::ok);
    ASSERT_TRUE(pair.until([&] { return !pair.notes[1].completions.empty(); }));
    EXPECT_EQ(word, words_of_pe_0[0]);
    EXPECT_EQ(open_descriptors(), connected);
    EXPECT_EQ(connected, descriptors + 2);
    // Each further lane has one for each PE.
    for (const int pe : {0, 1}) {
        ASSERT_EQ(pair.wires[static_cast<std::size_t>(pe)]->send({1 - pe, 1}, Bytes(8), {}), Code::ok);
        pair.notes[static_cast<std::size_t>(1 - pe)].messages.clear();
        ASSERT_TRUE(pair.until([&] { return !pair.notes[static_cast<std::size_t>(1 - pe)].messages.empty(); }));
        EXPECT_EQ(open_descriptors(), connected + 2 * static_cast<std::size_t>(pe + 1));
    }
}

// Each has operations under way when it learns of the other's connection. `order`: who makes progress, in turn.
void expect_one_connection(fakes::WirePair& pair, const std::array<network::RemoteAddress, 2>& places,
                           const std::vector<std::size_t>& order) {
    const std::size_t before = open_descriptors();
    std::array<std::uint64_t, 2> words{};
    std::array<WireContext, 4> contexts;
    const std::uint64_t value = 70;
    std::size_t turn = 0;
    for (std::uint8_t round = 0; round < 20; ++round) {
        for (const std::size_t pe : {std::size_t{0}, std::size_t{1}}) {
            network::Wire& wire = *pair.wires[pe];
            ASSERT_EQ(wire.send({1 - static_cast<int>(pe), 0}, Bytes(round % 7, std::byte{round}), {}), Code::ok);
            if (round == 4) {
                ASSERT_EQ(wire.read(places[pe], &words[pe], sizeof words[pe], contexts[pe]), Code::ok);
            }
            if (round == 5) {
                ASSERT_EQ(wire.write(places[pe], &value, sizeof value, contexts[2 + pe]), Code::ok);
            }
        }
        if (round > 7) {
            const std::size_t pe = order[turn++ % order.size()];
            (void)pair.wires[pe]->progress(pair.notes[pe]);
        }
    }
    ASSERT_TRUE(pair.until([&] {
        return std::ranges::all_of(
            pair.notes, [](const auto& notes) { return notes.messages.size() == 20 && notes.completions.size() == 2; });
    }));
    for (const fakes::RecordingListener& notes : pair.notes) {
        for (std::size_t i = 0; i < notes.messages.size(); ++i)
            EXPECT_EQ(notes.messages[i], Bytes(i % 7, static_cast<std::byte>(i)));
        for (const auto& [context, code] : notes.completions) EXPECT_EQ(code, Code::ok);
        EXPECT_THAT(notes.losses, IsEmpty());
    }
    EXPECT_THAT(words, ElementsAre(5, 5)) << "the write came after the read";
    EXPECT_TRUE(pair.until([&] { return open_descriptors() == before + 2; }));
}

TEST_F(TcpWires, PesThatConnectAtTheSameTimeKeepOneConnection) {
    const std::vector<std::vector<std::size_t>> orders{{0, 1}, {1, 0}, {0, 0, 0, 1}, {1, 1, 1, 0}, {0, 1, 1}};
    for (const auto& order : orders) {
        fakes::WirePair both(open_in_turn());
        std::uint64_t word_of_pe_0 = 5;
        both.words[3] = 5;
        const auto memory = both.wires[0]->register_memory(&word_of_pe_0, sizeof word_of_pe_0);
        ASSERT_TRUE(both.wires[1]->add_peer(0, both.wires[0]->address().value()).ok());
        const std::uint64_t key = both.wires[1]->import_key(0, memory.value().key).value();
        ASSERT_NO_FATAL_FAILURE(expect_one_connection(both, {both.place(0, 3), {{0, 0}, key, 0, 0}}, order));
        EXPECT_EQ(both.words[3], 70U);
        EXPECT_EQ(word_of_pe_0, 70U);
    }
}

// Neither waits for the other to read.
TEST_F(TcpWires, CarryManyLongReadsOfBothPesAtTheSameTime) {
    connect();
    connect_back();
    constexpr std::size_t count = 900;  // below the number of reads that may be under way
    constexpr std::size_t bytes = 16384;
    std::array<std::vector<std::byte>, 2> memory;
    std::array<std::vector<std::byte>, 2> back;
    std::array<network::RemoteAddress, 2> places;  // in the memory of the other PE
    for (std::size_t pe = 0; pe < 2; ++pe) {
        memory[pe].resize(count + bytes);
        back[pe].resize(count * bytes);
        for (std::size_t i = 0; i < memory[pe].size(); ++i)
            memory[pe][i] = static_cast<std::byte>(i * 7 + pe + i / 256);
    }
    for (std::size_t pe = 0; pe < 2; ++pe) {
        const int other = 1 - static_cast<int>(pe);
        const auto there = pair.wires[1 - pe]->register_memory(memory[1 - pe].data(), memory[1 - pe].size());
        places[pe] = {{other, 0}, pair.wires[pe]->import_key(other, there.value().key).value(), 0, 0};
    }
    std::array<std::vector<WireContext>, 2> contexts{std::vector<WireContext>(count), std::vector<WireContext>(count)};
    for (std::size_t pe = 0; pe < 2; ++pe)
        for (std::size_t i = 0; i < count; ++i) {
            places[pe].offset = i;
            ASSERT_EQ(pair.wires[pe]->read(places[pe], &back[pe][i * bytes], bytes, contexts[pe][i]), Code::ok);
        }
    ASSERT_TRUE(pair.until(
        [&] { return pair.notes[0].completions.size() == count && pair.notes[1].completions.size() == count; }));
    for (std::size_t pe = 0; pe < 2; ++pe)
        for (std::size_t i = 0; i < count; ++i) {
            EXPECT_THAT(pair.notes[pe].completions[i], Pair(&contexts[pe][i], Code::ok));
            ASSERT_TRUE(std::equal(&back[pe][i * bytes], &back[pe][i * bytes] + bytes, &memory[1 - pe][i])) << i;
        }
}

TEST_F(TcpWires, RefusalsThatCrossEndTheConnectionForBoth) {
    connect();
    connect_back();
    const std::uint64_t word = 1;
    std::array<WireContext, 2> contexts;
    network::RemoteAddress of_pe_1 = pair.place(0, 0);
    ++of_pe_1.key;
    network::RemoteAddress of_pe_0 = place_of_pe_0(0);
    ++of_pe_0.key;
    ASSERT_EQ(pair.wires[1]->write(of_pe_0, &word, sizeof word, contexts[1]), Code::ok);
    ASSERT_EQ(pair.wires[0]->write(of_pe_1, &word, sizeof word, contexts[0]), Code::ok);
    ASSERT_TRUE(pair.until([&] { return !pair.notes[0].losses.empty() && !pair.notes[1].losses.empty(); }));
    EXPECT_THAT(pair.notes[0].losses, SizeIs(1));
    EXPECT_THAT(pair.notes[1].losses, SizeIs(1));
}

TEST_F(TcpWires, ARefusalOnOneLaneLeavesTheLaneOfThePeerAlone) {
    connect();
    connect_back();
    const auto send_back = [&] { return pair.wires[1]->send({0, 2}, Bytes(8), {}); };
    ASSERT_EQ(pair.retry_until_posted(send_back), Code::ok);
    network::RemoteAddress nowhere = pair.place(2, 0);
    ++nowhere.key;
    const std::uint64_t word = 1;
    WireContext context;
    ASSERT_EQ(write(nowhere, std::as_bytes(std::span(&word, 1)), context), Code::ok);
    ASSERT_TRUE(pair.until([&] { return !pair.notes[0].losses.empty(); }));
    EXPECT_THAT(pair.notes[0].losses, ElementsAre(Pair(network::LaneId{1, 2}, HasSubstr("it has refused 8 bytes"))));
    ASSERT_EQ(send_back(), Code::ok);
    ASSERT_TRUE(pair.until([&] { return pair.notes[0].messages.size() == 2; }));
    EXPECT_THAT(pair.notes[1].losses, IsEmpty());
}

TEST(TcpWire, AnAddressThatThisHostLacksIsNamed) {
    const auto wire = TcpWire::open(Address::parse("192.0.2.1", 0).value(), 0, 2, 1, TcpWire::usual_gap);
    ASSERT_FALSE(wire.ok());
    EXPECT_THAT(wire.status().message(), AllOf(HasSubstr("192.0.2.1"), HasSubstr("Cannot assign")));
}

}  // namespace
}  // namespace npushmem::tcp
