// The runtime's memory: one segment per host, this PE's slice of it, and the addresses of symmetric objects.
#include <cstring>

#include "core/base/host_facts.hpp"
#include "core/runtime/runtime.hpp"
#include "core/runtime/start_exchange.hpp"

namespace npushmem {

Status Runtime::make_memory() {
    const auto local = layout_.pes_of(layout_.host_of(my_pe_));
    const auto local_pes = static_cast<int>(local.size());
    const std::uint64_t statics_bytes = rounded_up(statics_.max_bytes(), CommitMap::unit);
    const std::uint64_t statics_offset =
        SymmetricHeap::slice_bytes(settings().symmetric_size.value) + TeamTable::pool_bytes;
    const std::uint64_t slice = statics_offset + statics_bytes;
    SegmentHandle handle;
    if (local[0] == my_pe_) {
        auto made = HostMemory::create(slice, local_pes, settings().heap_dir);
        if (!made.ok()) return made.status();
        memory_ = std::make_unique<HostMemory>(std::move(made).value());
        handle = memory_->handle();
    }
    auto handles = gather(*bootstrap_, handle);
    if (!handles.ok()) return handles.status();
    if (!memory_) {
        auto joined = HostMemory::join(handles.value()[static_cast<std::size_t>(local[0])], slice, local_pes);
        if (!joined.ok()) return joined.status();
        memory_ = std::make_unique<HostMemory>(std::move(joined).value());
    }
    auto heap =
        SymmetricHeap::create(*memory_, layout_.local_index(my_pe_), slice, TeamTable::pool_bytes + statics_bytes);
    if (!heap.ok()) return heap.status();
    heap_ = std::make_unique<SymmetricHeap>(std::move(heap).value());
    if (settings().check) heap_->track_allocations();
    ControlBlock& control = heap_->control();
    control.magic = control_magic;
    control.version = control_version;
    control.pe = my_pe_;
    control.slice_bytes = slice;
    control.process = records_[static_cast<std::size_t>(my_pe_)].process;
    control.process_start = records_[static_cast<std::size_t>(my_pe_)].process_start;
    return statics_.share(*memory_, layout_.local_index(my_pe_), statics_offset);
}

std::byte* Runtime::slice_of(int pe) const {
    if (layout_.host_of(pe) != layout_.host_of(my_pe_)) return nullptr;
    return local_slices_[static_cast<std::size_t>(layout_.local_index(pe))];
}

void* Runtime::mapped(int pe, std::uint64_t offset) const {
    std::byte* const slice = slice_of(pe);
    const bool inside = offset < fast_.heap_bytes || offset - statics_.offset() < statics_.max_bytes();
    return slice != nullptr && inside ? slice + offset : nullptr;
}

std::uint64_t Runtime::offset_of(const void* object) const {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object) - fast_.heap;
    if (offset < fast_.heap_bytes) return offset;
    if (!statics_.holds(object)) return no_offset;
    return statics_.offset() + (reinterpret_cast<std::uintptr_t>(object) - statics_.image().begin);
}

std::uint64_t Runtime::bytes_to_end(std::uint64_t offset) const {
    if (offset < fast_.heap_bytes) return fast_.heap_bytes - offset;
    return offset - statics_.offset() < statics_.image().bytes ? statics_.offset() + statics_.image().bytes - offset
                                                               : 0;
}

Result<HeapRecord> Runtime::record_of(int pe, unsigned parity) {
    const std::uint64_t offset = offsetof(ControlBlock, heap) + parity * sizeof(HeapRecord);
    HeapRecord record{};
    if (const void* address = mapped(pe, offset)) {
        std::memcpy(&record, address, sizeof record);
        return record;
    }
    Status fetched = remote_->get(pe, offset, &record, sizeof record, RemoteAccess::Completion::local);
    return fetched.ok() ? Result<HeapRecord>(record) : Result<HeapRecord>(fetched);
}

}  // namespace npushmem
