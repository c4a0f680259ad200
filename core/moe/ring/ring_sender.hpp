// The sending end of a ring: one producer, one consumer, no lock.
//
//   prefetch_head -> reserve -> write -> commit
//
// What is written becomes visible at the commit: all bytes first, then the tail, once per batch. The peer's head is
// looked at only when what is known of it does not leave enough room, and then best ahead of time, while copies that
// gather the next batch are under way.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/moe/abort_bit.hpp"
#include "core/moe/ring/ring_errors.hpp"

namespace npushmem::moe {

// Where the sender's words and bytes are: the device's core (core_ring.hpp), a fake, an explored memory.
template <class P>
concept RingSenderPort = requires(P port, std::uint64_t position, const RingPiece& piece) {
    // The head as it is now, and everything that the peer read before it set it.
    { port.head() } -> std::same_as<std::uint64_t>;
    // The first head seen that is at least `position`; or why none came: a deadline, a dead peer.
    { port.await_head(position) } -> std::same_as<Result<std::uint64_t>>;
    // Begins to copy a part of the batch into the ring.
    port.copy(piece);
    // When all that was copied is in place at the peer: sets the tail there.
    port.commit(position);
    { port.now() } -> std::same_as<std::chrono::nanoseconds>;
};

// What a ring's traffic was, since creation.
struct RingSenderTraffic {
    std::uint64_t batches = 0;  // as many stores of the tail
    std::uint64_t splits = 0;   // batches across the ring's end
    std::uint64_t polls = 0;    // at the head, without waiting
    std::uint64_t waits = 0;    // for the head
};

// What outlives a call. Made of 64-bit words only, all of them zero at creation.
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

    // Looks at the head unless `bytes` fit anyway. Never waits, and never fails: reserve judges what was seen.
    void prefetch_head(Bytes bytes) {
        if (!fits(bytes) && !prefetched_head_) prefetched_head_ = poll_head();
    }

    // Waits until `bytes`, a multiple of the unit and no more than a batch, fit. A failure leaves the ring as it is,
    // and can be tried again.
    Status reserve(Bytes bytes) {
        if (bytes > shape_.batch || bytes.value() % RingShape::unit != 0)
            return batch_size_status(ranks_, shape_, bytes);
        if (fits(bytes)) return {};
        if (prefetched_head_) {
            if (Status s = adopt(*std::exchange(prefetched_head_, std::nullopt)); !s.ok() || fits(bytes)) return s;
        }
        // What was seen ahead of time is old by now.
        if (Status s = adopt(poll_head()); !s.ok() || fits(bytes)) return s;
        return wait(bytes);
    }

    // The same without waiting: whether they fit by now.
    Result<bool> try_reserve(Bytes bytes) {
        if (bytes > shape_.batch || bytes.value() % RingShape::unit != 0)
            return batch_size_status(ranks_, shape_, bytes);
        if (fits(bytes)) return true;
        if (Status s = adopt(poll_head()); !s.ok()) return s;
        return fits(bytes);
    }

    // Begins to copy `bytes`, which were reserved, behind what was written.
    void write(Bytes bytes) {
        const int pieces = for_each_piece(shape_.size, written_, bytes, [&](const RingPiece& p) { port_.copy(p); });
        state_.traffic.splits += pieces > 1 ? 1 : 0;
        written_ += bytes.value();
    }

    // Makes what was written visible to the peer. Comes before the next write.
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
            // A peer that has aborted ends the wait early; what it did before has just been taken in.
            return !s.ok() || fits(bytes) ? s : adopt(seen.value());
        }
        // The diagnosis tells where the peer is now, not where it was.
        if (Status s = adopt(poll_head()); !s.ok() || fits(bytes)) return s;
        return ring_full_status(ranks_, shape_, {state_.head, state_.tail}, bytes, port_.now() - begin, seen.status());
    }

    Port& port_;
    RingShape shape_;
    RingRanks ranks_;
    RingSenderState& state_;
    std::uint64_t written_;
    std::optional<std::uint64_t> prefetched_head_;  // a head that was read and not used yet
};

}  // namespace npushmem::moe
