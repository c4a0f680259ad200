#include "core/memory/symmetric_heap.hpp"

#include <fmt/core.h>

#include "core/base/parse.hpp"
#include "core/memory/rounding.hpp"

namespace npushmem {

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
    if (Status committed = heap.commit(0, control_bytes); !committed.ok()) return committed;
    // The control block is the first allocation, so that alignments count from the beginning of the slice.
    auto control = heap.allocator_.allocate(control_bytes);
    if (!control.ok()) return control.status();
    return heap;
}

Status SymmetricHeap::commit(std::uint64_t offset, std::uint64_t bytes) {
    for (const auto& range : committed_.missing(offset, bytes)) {
        if (Status status = memory_->commit(local_pe_, range.offset, range.bytes); !status.ok()) return status;
        committed_.mark(range, true);
    }
    return {};
}

Result<std::uint64_t> SymmetricHeap::allocate(std::uint64_t bytes, std::uint64_t alignment) {
    // Up to this they hold for the address, because slices begin at multiples of it.
    const std::uint64_t largest_alignment = HostMemory::slice_alignment(slice_bytes_);
    if (alignment > largest_alignment)
        return Status{Code::argument, fmt::format("an alignment of {} exceeds the largest supported, {}",
                                                  format_size(alignment), format_size(largest_alignment))};
    auto offset = allocator_.allocate(bytes, alignment);
    if (!offset.ok()) return offset;
    Status committed = commit(offset.value(), bytes);
    if (committed.ok() && tracker_) tracker_->add(offset.value(), bytes);
    if (committed.ok()) return offset;
    (void)allocator_.free(offset.value());
    return committed;
}

Status SymmetricHeap::free(std::uint64_t offset) {
    const auto size = allocator_.size_of(offset);
    if (Status freed = allocator_.free(offset); !freed.ok()) return freed;
    if (tracker_) tracker_->remove(offset);
    if (retains_pages_ || !size.ok() || size.value() < decommit_threshold) return {};
    if (committed_.committed_bytes() - allocator_.used() <= max_retained_bytes) return {};
    const auto range = CommitMap::inside(offset, size.value());
    memory_->decommit(local_pe_, range.offset, range.bytes);
    committed_.mark(range, false);
    return {};
}

Result<bool> SymmetricHeap::resize(std::uint64_t offset, std::uint64_t bytes) {
    const auto old = allocator_.size_of(offset);
    if (!old.ok()) return old.status();
    Status resized = allocator_.resize(offset, bytes);
    if (resized.code() == Code::memory) return false;
    if (!resized.ok()) return resized;
    Status committed = bytes > old.value() ? commit(offset + old.value(), bytes - old.value()) : Status{};
    if (committed.ok() && tracker_) tracker_->add(offset, bytes);
    if (committed.ok()) return true;
    (void)allocator_.resize(offset, old.value());
    return committed;
}

Result<std::uint64_t> SymmetricHeap::offset_of(const void* object) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(object) - reinterpret_cast<std::uintptr_t>(base_);
    if (offset < slice_bytes_) return std::uint64_t{offset};
    return Status{
        Code::not_symmetric,
        fmt::format("address {} is not in the symmetric heap, {} to {}; give what npushmem_malloc or its like "
                    "returned",
                    object, static_cast<const void*>(base_), static_cast<const void*>(base_ + slice_bytes_))};
}

}  // namespace npushmem
