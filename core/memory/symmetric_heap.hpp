// SPDX-License-Identifier: BSD-3-Clause
// This PE's part of the symmetric heap: offsets from the allocator, memory from the host's shared segment. Nothing here
// is collective, see CollectiveHeap. Offsets count from the beginning of the PE's slice.
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

// Tracks which parts of a slice are committed. It counts in units, so that small objects share one, and the operating
// system receives only uncommitted ranges.
class CommitMap {
public:
    static constexpr std::uint64_t unit = 64ULL << 10;

    struct Range {
        std::uint64_t offset;
        std::uint64_t bytes;
        friend bool operator==(const Range&, const Range&) = default;
    };

    explicit CommitMap(std::uint64_t slice_bytes) : committed_((slice_bytes + unit - 1) / unit) {}

    // Returns the ranges, in whole units, to commit before [offset, offset + bytes) may be used.
    [[nodiscard]] std::vector<Range> missing(std::uint64_t offset, std::uint64_t bytes) const;
    void mark(const Range& range, bool committed);
    // Returns the whole units inside [offset, offset + bytes), which may be decommitted when that range is freed.
    [[nodiscard]] static Range inside(std::uint64_t offset, std::uint64_t bytes);
    [[nodiscard]] std::uint64_t committed_bytes() const { return units_ * unit; }

private:
    std::vector<bool> committed_;
    std::uint64_t units_ = 0;  // committed units
};

// Tracks the objects of the symmetric heap for NPUSHMEM_CHECK and NPUSHMEM_NPU_CHECK: live objects, and ranges of freed
// objects. Any thread may call it.
class AllocationTracker {
public:
    // Records a live object; overlapping records of freed objects end.
    void add(std::uint64_t offset, std::uint64_t bytes);
    void remove(std::uint64_t offset);

    // Checks that these bytes are inside one live object. The failure (Code::argument or Code::range) describes them.
    [[nodiscard]] Status check(std::uint64_t offset, std::uint64_t bytes) const;

private:
    using Ranges = std::map<std::uint64_t, std::uint64_t>;  // bytes by offset
    static Ranges::const_iterator holding(const Ranges& ranges, std::uint64_t offset);

    mutable std::mutex lock_;
    Ranges live_;   // under lock_
    Ranges freed_;  // under lock_; ranges that are live again are removed
};

class SymmetricHeap {
public:
    // Room in each slice in addition to the user's size, for example for alignment. The runtime's own memory is the
    // control block and the tail.
    static constexpr std::uint64_t runtime_bytes = 1ULL << 20;
    // Returns the size of a slice for a user's heap of this size.
    static std::uint64_t slice_bytes(std::uint64_t heap_bytes);

    // `memory` outlives the heap. Commits the control block; fails with Code::memory. The heap does not use or commit
    // the last `tail_bytes` of the slice, whole units of the commit map; their owner does.
    static Result<SymmetricHeap> create(HostMemory& memory, int local_pe, std::uint64_t slice_bytes,
                                        std::uint64_t tail_bytes = 0);

    [[nodiscard]] std::byte* base() const { return base_; }
    [[nodiscard]] std::uint64_t bytes() const { return slice_bytes_; }
    // Returns the offset of the tail.
    [[nodiscard]] std::uint64_t tail() const { return slice_bytes_ - tail_bytes_; }
    [[nodiscard]] std::byte* at(std::uint64_t offset) const { return base_ + offset; }
    [[nodiscard]] ControlBlock& control() const { return *reinterpret_cast<ControlBlock*>(base_); }

    // Returns the offset of usable memory: committed, and zero if never used before. Fails with Code::memory, with the
    // numbers, when the heap or the machine has no room; the heap is then unchanged.
    Result<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment) {
        return allocate(bytes, alignment, bytes);
    }
    // The same, with only the first `usable` bytes committed.
    Result<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t usable);
    Status free(std::uint64_t offset);
    // Resizes an object in place. Returns false when the memory after it is in use. A failure (Code::memory: the
    // machine has no memory; Code::argument: no object) leaves the heap unchanged. Shrinking an object never fails.
    Result<bool> resize(std::uint64_t offset, std::uint64_t bytes);
    [[nodiscard]] Result<std::uint64_t> size_of(std::uint64_t offset) const;
    // Returns the offset of a pointer into the slice; fails when it points elsewhere.
    [[nodiscard]] Result<std::uint64_t> offset_of(const void* object) const;
    [[nodiscard]] AllocatorStatistics statistics() const { return allocator_.statistics(); }
    // From now on freed objects keep their memory: a NIC has registered its pages and would continue to write to them.
    void retain_pages() {
        retains_pages_ = true;
        memory_->retain_pages();
    }
    [[nodiscard]] bool retains_pages() const { return retains_pages_; }
    // From now on the heap tracks its objects, for checks.
    void track_allocations() { tracker_ = std::make_unique<AllocationTracker>(); }
    // From now on objects do not touch each other, so that accesses beyond the end of one are not in the next one.
    void leave_gaps() { gap_ = Allocator::granule; }
    // Null: not tracked.
    [[nodiscard]] const AllocationTracker* allocation_tracker() const { return tracker_.get(); }
    [[nodiscard]] std::uint64_t committed_bytes() const { return committed_.committed_bytes(); }

private:
    // A freed object of at least this size returns its memory to the system, unless little memory is both free and
    // committed: a program that allocates and frees the same object in a loop must not pay for new pages each time.
    static constexpr std::uint64_t decommit_threshold = 1ULL << 20;
    static constexpr std::uint64_t max_retained_bytes = 16ULL << 20;

    SymmetricHeap(HostMemory& memory, int local_pe, std::uint64_t slice_bytes, std::uint64_t tail_bytes);
    Status commit(std::uint64_t offset, std::uint64_t bytes);
    // The size of an object for the allocator.
    [[nodiscard]] std::uint64_t with_gap(std::uint64_t bytes) const;

    HostMemory* memory_;
    int local_pe_;
    std::uint64_t slice_bytes_;
    std::uint64_t tail_bytes_;
    std::byte* base_;
    Allocator allocator_;  // over the slice without the tail; the control block is its first allocation
    CommitMap committed_;
    std::map<std::uint64_t, std::uint64_t> uncommitted_;  // bytes of objects that are not committed, by offset
    std::uint64_t uncommitted_bytes_ = 0;                 // their sum
    bool retains_pages_ = false;
    std::uint64_t gap_ = 0;  // behind every object
    std::unique_ptr<AllocationTracker> tracker_;
};

}  // namespace npushmem
