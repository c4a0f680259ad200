// The symmetric heap as all PEs see it: every call is made by all PEs with equal arguments, and takes effect on all or
// on none. Each PE does its part, publishes what it did in its control block, meets the others, and compares.
#pragma once

#include <optional>
#include <string>

#include "core/memory/symmetric_heap.hpp"

namespace npushmem {

// What the collective heap needs of the other PEs.
class HeapPeers {
public:
    HeapPeers() = default;
    HeapPeers(const HeapPeers&) = delete;
    HeapPeers& operator=(const HeapPeers&) = delete;
    virtual ~HeapPeers() = default;

    [[nodiscard]] virtual int my_pe() const = 0;
    [[nodiscard]] virtual int npes() const = 0;
    // Barrier over all PEs, completing this PE's outstanding operations first.
    virtual Status heap_barrier() = 0;
    // The number of this PE's next barrier. PEs that synchronise with each other have the same number: a record that
    // bears another one was not made for this barrier.
    [[nodiscard]] virtual std::uint64_t next_barrier() const = 0;
    // A PE's record of the given parity, as it was published before the last barrier.
    virtual Result<HeapRecord> record_of(int pe, unsigned parity) = 0;
};

// What PEs that ask for different sizes get: a failure, or each as much as the PE that asks for most.
enum class Sizes { alike, may_differ };

class CollectiveHeap {
public:
    CollectiveHeap(SymmetricHeap& heap, HeapPeers& peers) : heap_(heap), peers_(peers) {}

    // Null and ok for 0 bytes.
    Result<void*> allocate(HeapCall call, std::uint64_t bytes, std::uint64_t alignment, Sizes sizes = Sizes::alike);
    Result<void*> reallocate(void* object, std::uint64_t bytes);
    Status free(void* object);

private:
    Result<std::uint64_t> prepare(HeapCall call, std::uint64_t bytes, std::uint64_t alignment);
    // This PE's part of a realloc to which all have agreed: the object's offset, the old one when it could stay.
    Result<std::uint64_t> resize_or_move(std::uint64_t offset, std::uint64_t bytes);
    // Publishes the record, meets the others and compares; the failure of any PE, or a difference, is everybody's.
    Status agree(HeapRecord& record, const Status& own);
    Status compare(const HeapRecord& mine);
    // After a barrier: the largest size that a PE asked for, if the calls differ in nothing else.
    [[nodiscard]] std::optional<std::uint64_t> largest_size(const HeapRecord& mine);
    [[nodiscard]] Result<std::uint64_t> known_object(const void* object) const;

    SymmetricHeap& heap_;
    HeapPeers& peers_;
};

}  // namespace npushmem
