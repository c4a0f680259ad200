// SPDX-License-Identifier: BSD-3-Clause
// The collective symmetric heap: all PEs make every call with equal arguments, and it takes effect on all PEs or on
// none. Only the death of a PE may leave the heaps of the others different. Each PE does its
// part, publishes a record of it in its control block, enters a barrier, and compares the records. Where there are many
// PEs, it does so only if their sums show a difference (CallSums).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "core/base/liveness.hpp"
#include "core/memory/call_sums.hpp"
#include "core/memory/symmetric_heap.hpp"

namespace npushmem {

// The other PEs, for the collective heap.
class HeapPeers {
public:
    HeapPeers() = default;
    HeapPeers(const HeapPeers&) = delete;
    HeapPeers& operator=(const HeapPeers&) = delete;
    virtual ~HeapPeers() = default;

    [[nodiscard]] virtual int my_pe() const = 0;
    // The PEs that make the calls.
    [[nodiscard]] virtual PeRange pes() const = 0;
    // Whether a death may have left the heaps of these PEs different; equal on all of them.
    [[nodiscard]] virtual bool heaps_may_differ() const { return false; }
    // Completes this PE's outstanding operations, then enters a barrier over these PEs.
    virtual Status heap_barrier() = 0;
    // Returns the number of this PE's next barrier. It is equal on PEs that enter the same barrier: a record with
    // another number belongs to another barrier.
    [[nodiscard]] virtual std::uint64_t next_barrier() const = 0;
    // Returns a PE's record of the given parity, as published before the last barrier.
    virtual Result<HeapRecord> record_of(int pe, unsigned parity) = 0;
    // Null: few PEs, or not those of the whole job. They compare their records after each call.
    [[nodiscard]] virtual CallSums* sums() { return nullptr; }
};

// Whether different sizes on the PEs are a failure, or each PE allocates the largest of them.
enum class Sizes { alike, may_differ };

class CollectiveHeap {
public:
    CollectiveHeap(SymmetricHeap& heap, HeapPeers& peers) : heap_(heap), peers_(peers) {}

    // Returns null and ok for 0 bytes.
    Result<void*> allocate(HeapCall call, std::uint64_t bytes, std::uint64_t alignment, Sizes sizes = Sizes::alike);
    Result<void*> reallocate(void* object, std::uint64_t bytes);
    Status free(void* object);

    // Whether a death may have left the heaps of the PEs different; equal on all of them.
    [[nodiscard]] bool may_differ() const { return peers_.heaps_may_differ(); }
    // A barrier of the PEs that share the heap, and no call of it.
    Status barrier() { return peers_.heap_barrier(); }
    // Frees the object on this PE only, where the heaps may differ. No PE accesses it any more.
    void free_here(void* object);

    // For RegisteredBuffers, whose buffers are objects of this heap: publishes the record, enters the barrier and
    // compares. All PEs return the failure of any PE, or a difference.
    Status agree(HeapRecord& record, const Status& own);
    // Calls `allocate`, which returns the offset of an object of record.bytes, and agrees on the offset: on all PEs it
    // is the same. A failure leaves no object.
    Result<std::uint64_t> place(HeapRecord& record, const std::function<Result<std::uint64_t>()>& allocate);
    // Returns the number of the next such call, equal on all PEs.
    [[nodiscard]] std::uint64_t next_call() const { return peers_.next_barrier(); }
    // From now on the object is a registered buffer, which free and reallocate refuse; or no longer.
    void set_buffer(std::uint64_t offset, bool is_buffer);

private:
    Result<std::uint64_t> prepare(HeapCall call, std::uint64_t bytes, std::uint64_t alignment);
    // Does this PE's part of an agreed realloc. Returns the object's offset: the old one if it did not move.
    Result<std::uint64_t> resize_or_move(std::uint64_t offset, std::uint64_t bytes);
    Status compare(const HeapRecord& mine);
    // After a barrier: returns the largest requested size, if the calls differ in nothing else.
    [[nodiscard]] std::optional<std::uint64_t> largest_size(const HeapRecord& mine);
    // After a barrier: returns the highest result, if the calls are equal and differ in nothing else.
    [[nodiscard]] std::optional<std::uint64_t> highest_result(const HeapRecord& mine);
    [[nodiscard]] Result<std::uint64_t> known_object(const void* object) const;

    SymmetricHeap& heap_;
    HeapPeers& peers_;
    std::set<std::uint64_t> buffers_;  // offsets of registered buffers
};

}  // namespace npushmem
