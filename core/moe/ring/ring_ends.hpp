// SPDX-License-Identifier: BSD-3-Clause
// The sending end of a ring: one producer, one consumer, no lock.
//
//   prefetch_head -> reserve -> write -> commit
//
// A commit makes the written bytes visible: first all bytes, then the tail, once per batch. The sender reads the peer's
// head only when the last known head does not leave enough room. prefetch_head reads it early, while copies gather the
// next batch.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/ring/ring_errors.hpp"

namespace npushmem::moe {

// Access to the sender's words and bytes: a core of the device (core_ring.hpp), a fake, or an explored memory.
template <class P>
concept RingSenderPort = requires(P port, std::uint64_t position, const RingPiece& piece) {
    // The current head. Acquires: the peer's reads before it set this head are complete.
    { port.head() } -> std::same_as<std::uint64_t>;
    // Waits for a head of at least `position` and returns it, or the error: a timeout or a dead peer.
    { port.await_head(position) } -> std::same_as<Result<std::uint64_t>>;
    // Starts to copy a part of the batch into the ring.
    port.copy(piece);
    // Sets the tail at the peer, after all copied bytes are in place there.
    port.commit(position);
    { port.now() } -> std::same_as<std::chrono::nanoseconds>;
};

// Traffic of a ring since its creation.
struct RingSenderTraffic {
    std::uint64_t batches = 0;  // as many stores of the tail
    std::uint64_t splits = 0;   // batches across the ring's end
    std::uint64_t polls = 0;    // at the head, without waiting
    std::uint64_t waits = 0;    // for the head
};

// State that outlives a call. It consists of 64-bit words only, all zero at creation.
struct RingSenderState {
    std::uint64_t tail = 0;  // committed
    std::uint64_t head = 0;  // last seen
    RingSenderTraffic traffic;
};

template <RingSenderPort Port>
class RingSender {
public:
    // All three must outlive the object. `shape` has passed its check; `state` belongs to this ring alone.
    RingSender(Port& port, const RingShape& shape, const RingRanks& ranks, RingSenderState& state)
        : port_(port), shape_(shape), ranks_(ranks), state_(state), written_(state.tail) {}

    // Reads the head unless `bytes` fit already. Never waits and never fails: reserve checks the value.
    void prefetch_head(Bytes bytes) {
        if (!fits(bytes) && !prefetched_head_) prefetched_head_ = poll_head();
    }

    // Waits until `bytes` fit. `bytes` is a multiple of the unit and at most a batch. A failure leaves the ring
    // unchanged; the call may be retried.
    Status reserve(Bytes bytes) {
        if (bytes > shape_.batch || bytes.value() % RingShape::unit != 0)
            return batch_size_status(ranks_, shape_, bytes);
        if (fits(bytes)) return {};
        if (prefetched_head_) {
            if (Status s = adopt(*std::exchange(prefetched_head_, std::nullopt)); !s.ok() || fits(bytes)) return s;
        }
        // The prefetched head is old by now.
        if (Status s = adopt(poll_head()); !s.ok() || fits(bytes)) return s;
        return wait(bytes);
    }

    // The same without waiting: returns whether `bytes` fit now.
    Result<bool> try_reserve(Bytes bytes) {
        if (bytes > shape_.batch || bytes.value() % RingShape::unit != 0)
            return batch_size_status(ranks_, shape_, bytes);
        if (fits(bytes)) return true;
        if (Status s = adopt(poll_head()); !s.ok()) return s;
        return fits(bytes);
    }

    // Starts to copy `bytes` reserved bytes behind those already written.
    void write(Bytes bytes) {
        const int pieces = for_each_piece(shape_.size, written_, bytes, [&](const RingPiece& p) { port_.copy(p); });
        state_.traffic.splits += pieces > 1 ? 1 : 0;
        written_ += bytes.value();
    }

    // Makes the written bytes visible to the peer. Call it before the next write.
    void commit() {
        if (written_ == state_.tail) return;
        port_.commit(written_);
        state_.tail = written_;
        ++state_.traffic.batches;
    }

private:
    [[nodiscard]] bool fits(Bytes bytes) const {
        return shape_.size.value() - (written_ - state_.head) >= bytes.value();
    }

    std::uint64_t poll_head() {
        ++state_.traffic.polls;
        return port_.head();
    }

    Status adopt(std::uint64_t seen) {
        if (Status s = check_head(ranks_, {state_.head, state_.tail}, seen); !s.ok()) return s;
        state_.head = without_abort_bit(seen);
        return {};
    }

    Status wait(Bytes bytes) {
        ++state_.traffic.waits;
        const std::chrono::nanoseconds begin = port_.now();
        const Result<std::uint64_t> seen = port_.await_head(written_ + bytes.value() - shape_.size.value());
        if (seen.ok()) {
            Status s = adopt(seen.value());
            // A peer that aborts ends the wait early. The first adopt took over its progress before the abort; the
            // second reports the abort.
            return !s.ok() || fits(bytes) ? s : adopt(seen.value());
        }
        // Reads the head again, so that the error message has the peer's current position.
        if (Status s = adopt(poll_head()); !s.ok() || fits(bytes)) return s;
        return ring_full_status(ranks_, shape_, {state_.head, state_.tail}, bytes, port_.now() - begin, seen.status());
    }

    Port& port_;
    RingShape shape_;
    RingRanks ranks_;
    RingSenderState& state_;
    std::uint64_t written_;
    std::optional<std::uint64_t> prefetched_head_;  // a head that was read but not used yet
};

// The receiving end of a ring: await -> pieces -> take, and publish_head at the end of a call.
//
// The ring is a stream of bytes: a row may arrive in parts, so a receiver takes the available bytes and does not wait
// for whole rows, which a full ring would never deliver. Both sides know the length of a call's stream.

template <class P>
concept RingReceiverPort = requires(P port, std::uint64_t position) {
    // The current tail. Acquires: all bytes before it are visible.
    { port.tail() } -> std::same_as<std::uint64_t>;
    // Waits for a tail of at least `position` and returns it, or the error.
    { port.await_tail(position) } -> std::same_as<Result<std::uint64_t>>;
    // Sets the head at the peer, after all reads of the ring are complete.
    port.release(position);
    { port.now() } -> std::same_as<std::chrono::nanoseconds>;
};

struct RingReceiverTraffic {
    std::uint64_t releases = 0;  // stores of the head
    std::uint64_t polls = 0;     // at the tail, without waiting
    std::uint64_t waits = 0;     // for the tail
};

// State that outlives a call. It consists of 64-bit words only, all zero at creation.
struct RingReceiverState {
    std::uint64_t taken = 0;
    std::uint64_t head = 0;  // the part of it that the peer knows
    std::uint64_t tail = 0;  // last seen
    RingReceiverTraffic traffic;
};

template <RingReceiverPort Port>
class RingReceiver {
public:
    // Like the constructor of RingSender.
    RingReceiver(Port& port, const RingShape& shape, const RingRanks& ranks, RingReceiverState& state)
        : port_(port), shape_(shape), ranks_(ranks), state_(state) {}

    // Waits for data. Returns the number of available bytes, from 1 to `most` (not 0).
    Result<Bytes> await(Bytes most) {
        if (state_.tail == state_.taken) {
            if (Status s = refresh(); !s.ok()) return s;
        }
        return std::min(most, Bytes{state_.tail - state_.taken});
    }

    // The same without waiting; may return 0.
    Result<Bytes> available(Bytes most) {
        if (state_.tail == state_.taken) {
            ++state_.traffic.polls;
            if (Status s = adopt(port_.tail()); !s.ok()) return s;
            if (state_.tail == state_.taken) publish_head();
        }
        return std::min(most, Bytes{state_.tail - state_.taken});
    }

    // Calls visit(piece) for each piece of the next `bytes` bytes in the ring. They must be available.
    template <class Visit>
    void pieces(Bytes bytes, Visit&& visit) const {
        for_each_piece(shape_.size, state_.taken, bytes, visit);
    }

    // Consumes the next `bytes` bytes: the sender may overwrite them.
    void take(Bytes bytes) {
        state_.taken += bytes.value();
        if (state_.taken - state_.head >= shape_.release.value()) publish_head();
    }

    // Publishes to the peer how much was taken. Call it at the end of every call: the peer may need the room for the
    // next one.
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
        // The peer may be waiting for room that this side has not published yet.
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
