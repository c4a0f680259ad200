// The receiving end of a ring: await -> pieces -> take, and publish_head at the end of a call.
//
// The ring is a stream of bytes: a row may arrive in parts, so a receiver takes what is there and does not wait for
// whole rows, which a full ring would never deliver. How long the stream of a call is both sides know.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>

#include "core/moe/abort_bit.hpp"
#include "core/moe/ring/ring_errors.hpp"

namespace npushmem::moe {

template <class P>
concept RingReceiverPort = requires(P port, std::uint64_t position) {
    // The tail as it is now, and all bytes before it.
    { port.tail() } -> std::same_as<std::uint64_t>;
    // The first tail seen that is at least `position`; or why none came.
    { port.await_tail(position) } -> std::same_as<Result<std::uint64_t>>;
    // When all that was read is no longer needed in the ring: sets the head at the peer.
    port.release(position);
    { port.now() } -> std::same_as<std::chrono::nanoseconds>;
};

struct RingReceiverTraffic {
    std::uint64_t releases = 0;  // stores of the head
    std::uint64_t polls = 0;     // at the tail, without waiting
    std::uint64_t waits = 0;     // for the tail
};

// What outlives a call. Made of 64-bit words only, all of them zero at creation.
struct RingReceiverState {
    std::uint64_t taken = 0;
    std::uint64_t head = 0;  // of it, told to the peer
    std::uint64_t tail = 0;  // last seen
    RingReceiverTraffic traffic;
};

template <RingReceiverPort Port>
class RingReceiver {
public:
    // As RingSender's.
    RingReceiver(Port& port, const RingShape& shape, const RingRanks& ranks, RingReceiverState& state)
        : port_(port), shape_(shape), ranks_(ranks), state_(state) {}

    // How many bytes are there, at most `most` (not 0), waiting for the first ones.
    Result<Bytes> await(Bytes most) {
        if (state_.tail == state_.taken) {
            if (Status s = refresh(); !s.ok()) return s;
        }
        return std::min(most, Bytes{state_.tail - state_.taken});
    }

    // The same without waiting, and possibly 0.
    Result<Bytes> available(Bytes most) {
        if (state_.tail == state_.taken) {
            ++state_.traffic.polls;
            if (Status s = adopt(port_.tail()); !s.ok()) return s;
            if (state_.tail == state_.taken) publish_head();
        }
        return std::min(most, Bytes{state_.tail - state_.taken});
    }

    // Calls visit(piece) for where the next `bytes`, which must be there, are in the ring.
    template <class Visit>
    void pieces(Bytes bytes, Visit&& visit) const {
        for_each_piece(shape_.size, state_.taken, bytes, visit);
    }

    // The next `bytes` are no longer needed in the ring.
    void take(Bytes bytes) {
        state_.taken += bytes.value();
        if (state_.taken - state_.head >= shape_.release.value()) publish_head();
    }

    // Tells the peer of all that was taken. Ends every call: the peer may need the room for the next one.
    void publish_head() {
        if (state_.head == state_.taken) return;
        port_.release(state_.taken);
        state_.head = state_.taken;
        ++state_.traffic.releases;
    }

private:
    Status refresh() {
        ++state_.traffic.polls;
        if (Status s = adopt(port_.tail()); !s.ok() || state_.tail != state_.taken) return s;
        // The peer may be waiting for the very room that has not been told of yet.
        publish_head();
        return wait();
    }

    Status adopt(std::uint64_t seen) {
        if (Status s = check_tail(ranks_, shape_, {state_.head, state_.tail}, seen); !s.ok()) return s;
        state_.tail = without_abort_bit(seen);
        return {};
    }

    Status wait() {
        ++state_.traffic.waits;
        const std::chrono::nanoseconds begin = port_.now();
        const Result<std::uint64_t> seen = port_.await_tail(state_.taken + RingShape::unit);
        if (seen.ok()) return adopt(seen.value());
        return ring_empty_status(ranks_, {state_.head, state_.tail}, port_.now() - begin, seen.status());
    }

    Port& port_;
    RingShape shape_;
    RingRanks ranks_;
    RingReceiverState& state_;
};

}  // namespace npushmem::moe
