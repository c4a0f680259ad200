// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/symmetric_heap.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "core/base/host_facts.hpp"
#include "core/base/parse.hpp"

namespace npushmem {

std::vector<CommitMap::Range> CommitMap::missing(std::uint64_t offset, std::uint64_t bytes) const {
    std::vector<Range> ranges;
    if (bytes == 0) return ranges;
    const std::uint64_t last = (offset + bytes + unit - 1) / unit;
    for (std::uint64_t i = offset / unit; i < last; ++i) {
        if (committed_[i]) continue;
        const bool adjacent = !ranges.empty() && ranges.back().offset + ranges.back().bytes == i * unit;
        if (adjacent)
            ranges.back().bytes += unit;
        else
            ranges.push_back({i * unit, unit});
    }
    return ranges;
}

void CommitMap::mark(const Range& range, bool committed) {
    for (std::uint64_t i = range.offset / unit; i < (range.offset + range.bytes) / unit; ++i) {
        if (committed_[i] == committed) continue;
        committed_[i] = committed;
        committed ? ++units_ : --units_;
    }
}

CommitMap::Range CommitMap::inside(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t first = (offset + unit - 1) / unit * unit;
    const std::uint64_t end = (offset + bytes) / unit * unit;
    return {first, end > first ? end - first : 0};
}

void AllocationTracker::add(std::uint64_t offset, std::uint64_t bytes) {
    const std::lock_guard guard(lock_);
    auto old = freed_.lower_bound(offset);
    if (old != freed_.begin() && std::prev(old)->first + std::prev(old)->second > offset) --old;
    while (old != freed_.end() && old->first < offset + bytes) old = freed_.erase(old);
    live_[offset] = bytes;
}

void AllocationTracker::remove(std::uint64_t offset) {
    const std::lock_guard guard(lock_);
    const auto found = live_.find(offset);
    if (found == live_.end()) return;
    freed_[offset] = found->second;
    live_.erase(found);
}

AllocationTracker::Ranges::const_iterator AllocationTracker::holding(const Ranges& ranges, std::uint64_t offset) {
    const auto after = ranges.upper_bound(offset);
    if (after == ranges.begin()) return ranges.end();
    const auto last = std::prev(after);
    return offset - last->first < last->second ? last : ranges.end();
}

Status AllocationTracker::check(std::uint64_t offset, std::uint64_t bytes) const {
    const std::lock_guard guard(lock_);
    if (const auto object = holding(live_, offset); object != live_.end()) {
        const std::uint64_t left = object->second - (offset - object->first);
        if (bytes <= left) return {};
        return {Code::range, fmt::format("reach {} bytes beyond the object of {} bytes that they begin in",
                                         bytes - left, object->second)};
    }
    if (const auto object = holding(freed_, offset); object != freed_.end())
        return {Code::argument, fmt::format("lie in an object of {} bytes that has been freed", object->second)};
    return {Code::argument, "lie in no object from npushmem_malloc"};
}

std::uint64_t SymmetricHeap::slice_bytes(std::uint64_t heap_bytes) {
    return rounded_up(heap_bytes + runtime_bytes + control_bytes, CommitMap::unit);
}

SymmetricHeap::SymmetricHeap(HostMemory& memory, int local_pe, std::uint64_t slice_bytes, std::uint64_t tail_bytes)
    : memory_(&memory),
      local_pe_(local_pe),
      slice_bytes_(slice_bytes),
      tail_bytes_(tail_bytes),
      base_(memory.slice(local_pe)),
      allocator_(slice_bytes - tail_bytes),
      committed_(slice_bytes) {}

Result<SymmetricHeap> SymmetricHeap::create(HostMemory& memory, int local_pe, std::uint64_t slice_bytes,
                                            std::uint64_t tail_bytes) {
    SymmetricHeap heap(memory, local_pe, slice_bytes, tail_bytes);
    // Not the whole unit, which would take as long as several steps of a start. The first object commits the rest.
    if (Status committed = memory.commit(local_pe, 0, control_bytes); !committed.ok()) return committed;
    // The control block is the first allocation, so that alignments count from the beginning of the slice.
    auto control = heap.allocator_.allocate(control_bytes);
    if (!control.ok()) return control.status();
    return heap;
}

Status SymmetricHeap::commit(std::uint64_t offset, std::uint64_t bytes) {
    for (const auto& range : committed_.missing(offset, bytes)) {
        // A failed commit releases the whole range: the control block must not be in it.
        const std::uint64_t begin = std::max(range.offset, control_bytes);
        const std::uint64_t end = range.offset + range.bytes;
        if (Status status = memory_->commit(local_pe_, begin, end - begin); !status.ok()) return status;
        committed_.mark(range, true);
    }
    return {};
}

std::uint64_t SymmetricHeap::with_gap(std::uint64_t bytes) const {
    const bool fits = bytes > 0 && bytes <= slice_bytes_;
    return fits ? bytes + gap_ : bytes;
}

Result<std::uint64_t> SymmetricHeap::size_of(std::uint64_t offset) const {
    auto size = allocator_.size_of(offset);
    if (size.ok() && offset != 0) return size.value() - gap_;
    return size;
}

Result<std::uint64_t> SymmetricHeap::allocate(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t usable) {
    // Up to this, alignments hold for the address, because slices begin at multiples of it.
    const std::uint64_t largest_alignment = HostMemory::slice_alignment(slice_bytes_);
    if (alignment > largest_alignment)
        return Status{Code::argument, fmt::format("an alignment of {} exceeds the largest supported, {}",
                                                  format_size(alignment), format_size(largest_alignment))};
    auto offset = allocator_.allocate(with_gap(bytes), alignment);
    if (!offset.ok()) return offset;
    Status committed = commit(offset.value(), usable);
    if (committed.ok() && tracker_) tracker_->add(offset.value(), bytes);
    if (committed.ok() && usable < bytes) {
        uncommitted_.emplace(offset.value(), bytes - usable);
        uncommitted_bytes_ += bytes - usable;
    }
    if (committed.ok()) return offset;
    (void)allocator_.free(offset.value());
    return committed;
}

Status SymmetricHeap::free(std::uint64_t offset) {
    const auto size = size_of(offset);
    if (Status freed = allocator_.free(offset); !freed.ok()) return freed;
    if (const auto known = uncommitted_.extract(offset); !known.empty()) uncommitted_bytes_ -= known.mapped();
    if (tracker_) tracker_->remove(offset);
    if (retains_pages_ || !size.ok() || size.value() < decommit_threshold) return {};
    if (committed_.committed_bytes() + uncommitted_bytes_ <= allocator_.used() + max_retained_bytes) return {};
    const auto range = CommitMap::inside(offset, size.value());
    memory_->decommit(local_pe_, range.offset, range.bytes);
    committed_.mark(range, false);
    return {};
}

Result<bool> SymmetricHeap::resize(std::uint64_t offset, std::uint64_t bytes) {
    const auto old = size_of(offset);
    if (!old.ok()) return old.status();
    Status resized = allocator_.resize(offset, with_gap(bytes));
    if (resized.code() == Code::memory) return false;
    if (!resized.ok()) return resized;
    Status committed = bytes > old.value() ? commit(offset + old.value(), bytes - old.value()) : Status{};
    if (committed.ok() && tracker_) tracker_->add(offset, bytes);
    if (committed.ok()) return true;
    (void)allocator_.resize(offset, with_gap(old.value()));
    return committed;
}

Result<std::uint64_t> SymmetricHeap::offset_of(const void* object) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(object) - reinterpret_cast<std::uintptr_t>(base_);
    if (offset < slice_bytes_) return std::uint64_t{offset};
    return Status{
        Code::not_symmetric,
        fmt::format("address {} is not in the symmetric heap, {} to {}; pass an address that npushmem_malloc or "
                    "a similar function returned",
                    object, static_cast<const void*>(base_), static_cast<const void*>(base_ + slice_bytes_))};
}

}  // namespace npushmem
