// This PE's part of the symmetric heap: offsets from the allocator, memory behind them from the host's shared segment.
// Nothing here is collective; CollectiveHeap makes it so. Offsets count from the beginning of the PE's slice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/memory/allocator.hpp"
#include "core/memory/host_memory.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Which parts of a slice have memory behind them. Kept in units, so that small objects share one, and only ranges that
// are not committed yet are ever handed to the operating system.

class CommitMap {
public:
    static constexpr std::uint64_t unit = 64ULL << 10;

    struct Range {
        std::uint64_t offset;
        std::uint64_t bytes;
        friend bool operator==(const Range&, const Range&) = default;
    };

    explicit CommitMap(std::uint64_t slice_bytes) : committed_((slice_bytes + unit - 1) / unit) {}

    // Ranges, in whole units, that must be committed before [offset, offset + bytes) may be used.
    [[nodiscard]] std::vector<Range> missing(std::uint64_t offset, std::uint64_t bytes) const;
    void mark(const Range& range, bool committed);
    // The whole units inside [offset, offset + bytes): what can be given back when only that range is freed.
    [[nodiscard]] static Range inside(std::uint64_t offset, std::uint64_t bytes);
    [[nodiscard]] std::uint64_t committed_bytes() const { return units_ * unit; }

private:
    std::vector<bool> committed_;
    std::uint64_t units_ = 0;  // that are committed
};

// What lies in the symmetric heap, for NPUSHMEM_CHECK: which objects live, and which ranges belonged to objects that
// have been freed. Any thread.

class AllocationTracker {
public:
    // An object now lives there, whatever was there before.
    void add(std::uint64_t offset, std::uint64_t bytes);
    void remove(std::uint64_t offset);

    // Do these bytes belong to one living object? If not, the Status (Code::argument or Code::range) says what they
    // are.
    [[nodiscard]] Status check(std::uint64_t offset, std::uint64_t bytes) const;

private:
    using Ranges = std::map<std::uint64_t, std::uint64_t>;  // bytes by offset
    static Ranges::const_iterator holding(const Ranges& ranges, std::uint64_t offset);

    mutable std::mutex lock_;
    Ranges live_;   // under lock_
    Ranges freed_;  // under lock_; nothing that lives again
};

class SymmetricHeap {
public:
    // Room that the runtime takes for itself in each slice, beyond what users asked for.
    static constexpr std::uint64_t runtime_bytes = 1ULL << 20;
    // Bytes of a slice for a user's heap of this size.
    static std::uint64_t slice_bytes(std::uint64_t heap_bytes);

    // `memory` outlives the heap. Commits the control block; fails when even that finds no memory. The last
    // `tail_bytes` of the slice, whole units of the commit map, are left to somebody else, who commits them himself.
    static Result<SymmetricHeap> create(HostMemory& memory, int local_pe, std::uint64_t slice_bytes,
                                        std::uint64_t tail_bytes = 0);

    [[nodiscard]] std::byte* base() const { return base_; }
    [[nodiscard]] std::uint64_t bytes() const { return slice_bytes_; }
    // Offset of what is left to somebody else.
    [[nodiscard]] std::uint64_t tail() const { return slice_bytes_ - tail_bytes_; }
    [[nodiscard]] std::byte* at(std::uint64_t offset) const { return base_ + offset; }
    [[nodiscard]] ControlBlock& control() const { return *reinterpret_cast<ControlBlock*>(base_); }

    // Offset of memory that may be used: committed, zero where it was never used before. Code::memory with the numbers
    // when either the heap or the machine has no room; the heap is then as it was.
    Result<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment);
    Status free(std::uint64_t offset);
    // Changes an object's size where it stands; false when what follows it is in use. A failure (Code::memory: the
    // machine has no room; Code::argument: no object) leaves the heap as it was. Shrinking an object never fails.
    Result<bool> resize(std::uint64_t offset, std::uint64_t bytes);
    [[nodiscard]] Result<std::uint64_t> size_of(std::uint64_t offset) const { return allocator_.size_of(offset); }
    // Offset of a pointer into the slice, or failure when it points elsewhere.
    [[nodiscard]] Result<std::uint64_t> offset_of(const void* object) const;
    [[nodiscard]] AllocatorStatistics statistics() const { return allocator_.statistics(); }
    // From now on freed objects keep their memory: a NIC knows its pages, and would go on writing to them.
    void retain_pages() {
        retains_pages_ = true;
        memory_->retain_pages();
    }
    // From now on the heap tracks its objects, for checks.
    void track_allocations() { tracker_ = std::make_unique<AllocationTracker>(); }
    // Null: none is kept.
    [[nodiscard]] const AllocationTracker* allocation_tracker() const { return tracker_.get(); }
    [[nodiscard]] std::uint64_t committed_bytes() const { return committed_.committed_bytes(); }

private:
    // A freed object at least this large gives its memory back to the system, unless all that is free and committed is
    // little: a program that allocates and frees the same object in a loop must not pay for new pages each time.
    static constexpr std::uint64_t decommit_threshold = 1ULL << 20;
    static constexpr std::uint64_t max_retained_bytes = 16ULL << 20;

    SymmetricHeap(HostMemory& memory, int local_pe, std::uint64_t slice_bytes, std::uint64_t tail_bytes);
    Status commit(std::uint64_t offset, std::uint64_t bytes);

    HostMemory* memory_;
    int local_pe_;
    std::uint64_t slice_bytes_;
    std::uint64_t tail_bytes_;
    std::byte* base_;
    Allocator allocator_;  // over the slice without the tail; the control block is its first allocation
    CommitMap committed_;
    bool retains_pages_ = false;
    std::unique_ptr<AllocationTracker> tracker_;
};

}  // namespace npushmem
