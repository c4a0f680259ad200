// SPDX-License-Identifier: BSD-3-Clause
// The ring's two ends under every interleaving of their memory operations: no data is lost, overwritten or read too
// early, and no end waits without end; with wraps at every offset, over several calls without clearing.
//
// A unit of the ring is one word, which holds the absolute position of the unit that was written last.
#include <gmock/gmock.h>

#include <cstdio>
#include <vector>

#include "core/moe/ring/ring_ends.hpp"
#include "tests/unit/core/base/interleaver.hpp"

namespace npushmem::moe {
namespace {

using npushmem::testing::InterleavedMemory;
using npushmem::testing::InterleavedPrograms;
using npushmem::testing::InterleavedWorld;
using npushmem::testing::Interleavings;
using npushmem::testing::run_all_interleavings;

constexpr int head_word = 0;
constexpr int tail_word = 1;
constexpr int fault_word = 2;  // the first position at which the receiver found something else, and 1
constexpr int first_unit = 3;

constexpr Bytes units(std::uint64_t count) { return Bytes{count * RingShape::unit}; }
constexpr std::uint64_t to_units(std::uint64_t bytes) { return bytes / RingShape::unit; }

// Sizes in units.
struct Ring {
    std::uint64_t size;
    std::uint64_t batch;
    std::uint64_t release;
    std::uint64_t begin = 0;                                // position of both ends at first
    std::vector<std::vector<std::uint64_t>> calls = {{1}};  // the batches of each
    bool pulled = false;  // the receiver's copies are under way until they are waited for, before the head

    [[nodiscard]] RingShape shape() const { return {units(size), units(batch), units(release)}; }
};

enum class Mistake { none, tail_before_data, head_before_reading, waits_without_release, ignores_the_head };

class ExploredSender {
public:
    ExploredSender(InterleavedMemory& memory, std::uint64_t position, Mistake mistake)
        : memory_(memory), position_(position), mistake_(mistake) {}

    // A sender that does not read the head assumes "lots of room".
    std::uint64_t head() { return mistake_ == Mistake::ignores_the_head ? position_ : memory_.load(head_word); }
    Result<std::uint64_t> await_head(std::uint64_t position) { return memory_.wait_reaches(head_word, position); }
    void copy(const RingPiece& piece) {
        if (mistake_ == Mistake::tail_before_data)
            held_back_.push_back(piece);
        else
            put(piece);
        written_ += piece.bytes;
    }
    void commit(std::uint64_t tail) {
        memory_.store(tail_word, tail);
        for (const RingPiece& piece : std::exchange(held_back_, {})) put(piece);
        position_ += std::exchange(written_, 0);
    }
    static std::chrono::nanoseconds now() { return {}; }

private:
    void put(const RingPiece& piece) {
        for (std::uint64_t i = 0; i < to_units(piece.bytes); ++i) {
            const int word = first_unit + static_cast<int>(to_units(piece.at) + i);
            memory_.store_late(word, position_ + piece.from + i * RingShape::unit);
        }
    }

    InterleavedMemory& memory_;
    std::uint64_t position_;
    std::uint64_t written_ = 0;
    Mistake mistake_;
    std::vector<RingPiece> held_back_;
};

void read(InterleavedMemory& memory, const RingPiece& piece, std::uint64_t position) {
    for (std::uint64_t i = 0; i < to_units(piece.bytes); ++i) {
        const std::uint64_t expected = position + piece.from + i * RingShape::unit;
        const std::uint64_t seen = memory.load(first_unit + static_cast<int>(to_units(piece.at) + i));
        if (!memory.stopped() && seen != expected) memory.store(fault_word, expected + 1);
    }
}

class ExploredReceiver {
public:
    ExploredReceiver(InterleavedMemory& memory, const Ring& ring, Mistake mistake)
        : memory_(memory), pulled_(ring.pulled), mistake_(mistake) {}

    void copy(const RingPiece& piece, std::uint64_t position) {
        if (pulled_)
            under_way_.emplace_back(piece, position);
        else
            read(memory_, piece, position);
    }

    std::uint64_t tail() { return memory_.load(tail_word); }
    Result<std::uint64_t> await_tail(std::uint64_t position) { return memory_.wait_reaches(tail_word, position); }
    void release(std::uint64_t head) {
        for (const auto& [piece, position] : std::exchange(under_way_, {})) read(memory_, piece, position);
        if (mistake_ != Mistake::waits_without_release) memory_.store(head_word, head);
    }
    static std::chrono::nanoseconds now() { return {}; }

private:
    InterleavedMemory& memory_;
    bool pulled_;
    Mistake mistake_;
    std::vector<std::pair<RingPiece, std::uint64_t>> under_way_;
};
static_assert(RingSenderPort<ExploredSender> && RingReceiverPort<ExploredReceiver>);

void send(InterleavedMemory& memory, const Ring& ring, Mistake mistake) {
    RingSenderState state{.tail = ring.begin, .head = ring.begin, .traffic = {}};
    for (const auto& batches : ring.calls) {
        ExploredSender port(memory, state.tail, mistake);
        RingSender sender(port, ring.shape(), {0, 1}, state);
        for (const std::uint64_t batch : batches) {
            sender.prefetch_head(units(batch));
            if (!sender.reserve(units(batch)).ok()) return;
            sender.write(units(batch));
            sender.commit();
        }
    }
}

// Takes the available bytes, at most `at_once` at a time, until the call's bytes are complete.
void receive(InterleavedMemory& memory, const Ring& ring, Mistake mistake) {
    RingReceiverState state{.taken = ring.begin, .head = ring.begin, .tail = ring.begin, .traffic = {}};
    for (const auto& batches : ring.calls) {
        ExploredReceiver port(memory, ring, mistake);
        RingReceiver receiver(port, ring.shape(), {1, 0}, state);
        std::uint64_t left = 0;
        for (const std::uint64_t batch : batches) left += units(batch).value();
        while (left > 0) {
            const Result<Bytes> there = receiver.await(Bytes{left});
            if (!there.ok()) return;
            if (mistake == Mistake::head_before_reading) memory.store(head_word, state.taken + there.value().value());
            receiver.pieces(there.value(), [&](const RingPiece& piece) { port.copy(piece, state.taken); });
            receiver.take(there.value());
            left -= there.value().value();
        }
        receiver.publish_head();
    }
}

std::uint64_t end_of(const Ring& ring) {
    std::uint64_t end = ring.begin;
    for (const auto& batches : ring.calls) {
        for (const std::uint64_t batch : batches) end += units(batch).value();
    }
    return end;
}

Interleavings explore(const Ring& ring, Mistake mistake = Mistake::none) {
    InterleavedPrograms question{.programs = {}, .words = {}, .check = {}};
    question.programs.emplace_back([=](InterleavedMemory& memory) { send(memory, ring, mistake); });
    question.programs.emplace_back([=](InterleavedMemory& memory) { receive(memory, ring, mistake); });
    question.words.assign(first_unit + ring.size, 1);  // no position
    question.words[fault_word] = 0;
    question.words[head_word] = question.words[tail_word] = ring.begin;
    question.check = [end = end_of(ring)](const InterleavedWorld& world, bool ended) -> std::string {
        if (world.words[fault_word] != 0) return "other bytes than were sent";
        if (!ended) return "";
        return world.words[head_word] == end && world.words[tail_word] == end ? "" : "head and tail differ at the end";
    };
    return run_all_interleavings(question);
}

std::size_t expect_sound(const Ring& ring) {
    EXPECT_TRUE(ring.shape().check().ok());
    const Interleavings result = explore(ring);
    EXPECT_EQ(result.fault, "") << "ring of " << ring.size << ", batch " << ring.batch << ", release " << ring.release
                                << ", begun at " << ring.begin;
    EXPECT_TRUE(result.complete);
    return result.states;
}

TEST(RingExplored, WrapsAtEveryOffset) {
    std::size_t states = 0;
    for (const std::uint64_t size : {1, 2, 3}) {
        for (std::uint64_t batch = 1; batch <= size; ++batch) {
            for (std::uint64_t release = 1; release <= size; ++release) {
                for (std::uint64_t begin = 0; begin < size; ++begin) {
                    states += expect_sound({size, batch, release, units(begin).value(), {{batch, batch, batch}}});
                }
            }
        }
    }
    std::printf("%zu states\n", states);
}

TEST(RingExplored, BatchesOfAllLengthsInARow) {
    for (const std::uint64_t release : {1, 2, 3}) {
        expect_sound({3, 3, release, 0, {{1, 2, 3, 1}}});
        expect_sound({3, 3, release, 0, {{3, 1, 2, 2}}});
        expect_sound({2, 2, std::min<std::uint64_t>(release, 2), 0, {{2, 1, 2, 1}}});
    }
}

TEST(RingExplored, CallsFollowEachOtherWithNothingInBetween) {
    expect_sound({2, 2, 2, 0, {{2}, {1}, {2}, {1}}});
    expect_sound({3, 2, 3, units(2).value(), {{2, 1}, {}, {2}, {1, 1}}});
}

TEST(RingExplored, PositionsAreFarBeyondThirtyTwoBits) {
    expect_sound({3, 2, 2, units((std::uint64_t{1} << 40) + 1).value(), {{2, 2}, {1, 2}}});
}

TEST(RingExplored, TheSendersRingFromWhichTheReceiverPulls) {
    for (const std::uint64_t size : {1, 2, 3}) {
        for (std::uint64_t release = 1; release <= size; ++release) {
            for (std::uint64_t begin = 0; begin < size; ++begin) {
                expect_sound({size, size, release, units(begin).value(), {{size, 1}, {1, size}}, true});
            }
        }
    }
    const Ring ring{1, 1, 1, 0, {{1, 1}}, true};
    EXPECT_EQ(explore(ring, Mistake::tail_before_data).fault, "other bytes than were sent");
    EXPECT_EQ(explore(ring, Mistake::head_before_reading).fault, "other bytes than were sent");
}

// Each of these looks correct but has an error, which the exploration must find.

TEST(RingExplored, FindsATailThatOvertakesItsData) {
    EXPECT_EQ(explore({2, 1, 1, 0, {{1, 1, 1}}}, Mistake::tail_before_data).fault, "other bytes than were sent");
}

TEST(RingExplored, FindsAHeadPublishedBeforeTheDataIsRead) {
    EXPECT_EQ(explore({1, 1, 1, 0, {{1, 1}}}, Mistake::head_before_reading).fault, "other bytes than were sent");
}

TEST(RingExplored, FindsAReceiverThatWaitsWithoutReleasingRoom) {
    EXPECT_EQ(explore({2, 1, 2, 0, {{1, 1, 1}}}, Mistake::waits_without_release).fault, "deadlock");
}

TEST(RingExplored, FindsASenderThatDoesNotPoll) {
    EXPECT_EQ(explore({1, 1, 1, 0, {{1, 1}}}, Mistake::ignores_the_head).fault, "other bytes than were sent");
}

}  // namespace
}  // namespace npushmem::moe
