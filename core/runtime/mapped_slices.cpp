// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/mapped_slices.hpp"

#include <algorithm>

#include "core/base/host_facts.hpp"
#include "core/runtime/start_exchange.hpp"
#include "core/team/team_table.hpp"

namespace npushmem {

MappedSlices::MappedSlices(JobMembership& job, ProgramImage image)
    : job_(job), statics_(std::move(image), job.pes(), job.my_pe()) {}

Status MappedSlices::create(const Settings& settings) {
    const std::uint64_t statics_bytes = rounded_up(statics_.max_bytes(), CommitMap::unit);
    const std::uint64_t statics_offset =
        SymmetricHeap::slice_bytes(settings.symmetric_size.value) + TeamTable::pool_bytes;
    const std::uint64_t slice = statics_offset + statics_bytes;
    if (Status opened = open_host_memory(slice, settings); !opened.ok()) return opened;
    auto heap = SymmetricHeap::create(*memory_, job_.local_index(), slice, TeamTable::pool_bytes + statics_bytes);
    if (!heap.ok()) return heap.status();
    heap_ = std::make_unique<SymmetricHeap>(std::move(heap).value());
    if (settings.check || settings.npu_check) heap_->track_allocations();
    // Where only some PEs check their kernels, too, the heaps must not differ.
    if (std::ranges::any_of(job_.records().common, [](const CommonRecord& each) { return each.npu_check != 0; }))
        heap_->leave_gaps();
    init_control(slice);
    return statics_.share(*memory_, job_.local_index(), statics_offset);
}

// The host's first PE creates the segment; the others join it with the handle that they gather.
Status MappedSlices::open_host_memory(std::uint64_t slice_bytes, const Settings& settings) {
    const auto local = job_.local_pes();
    SegmentHandle handle;
    if (job_.local_index() == 0) {
        auto made = HostMemory::create(slice_bytes, local.count, settings.heap_dir);
        if (!made.ok()) return made.status();
        memory_ = std::make_unique<HostMemory>(std::move(made).value());
        handle = memory_->handle();
        // Without room each PE keeps its own copy.
        (void)memory_->publish(HostMemory::Publication::processes, job_.pes().view());
        if (job_.layout().hosts() == 1)
            (void)memory_->reserve(HostMemory::Publication::endpoint_rows,
                                   endpoint_row_bytes * static_cast<std::uint64_t>(job_.npes()));
        if (Status sent = job_.process_spaces().send(memory_->descriptor()); !sent.ok()) return sent;
    }
    auto handles = gather(job_.bootstrap(), handle);
    if (!handles.ok()) return handles.status();
    if (!memory_) {
        const SegmentHandle& first = handles.value()[static_cast<std::size_t>(local.at(0))];
        auto joined = HostMemory::join(attach(first), first, slice_bytes, local.count);
        if (!joined.ok()) return joined.status();
        memory_ = std::make_unique<HostMemory>(std::move(joined).value());
    }
    if (const auto pes = memory_->published(HostMemory::Publication::processes); !pes.empty()) job_.share_pes(pes);
    if (settings.huge_pages) memory_->use_huge_pages();
    const bool hidden = std::ranges::any_of(local, [this](int pe) { return !job_.sees_process_of(pe); });
    return hidden ? memory_->show_life(job_.local_index()) : Status{};
}

Result<SharedSegment> MappedSlices::attach(const SegmentHandle& handle) const {
    if (!job_.process_spaces().receives()) return SharedSegment::attach(handle);
    const auto received = job_.process_spaces().receive();
    return received.ok() ? SharedSegment::attach(handle, received.value()) : Result<SharedSegment>(received.status());
}

bool MappedSlices::has_ended_unseen(int pe) const {
    const ControlBlock* const control = control_of(pe);
    if (control == nullptr || job_.sees_process_of(pe)) return false;
    // Finalize ends the proof of life. Acquire: see JobLiveness, which decides about finalized PEs.
    const bool finalized =
        control->state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(PeState::finalized);
    return !finalized && !memory_->shows_life(job_.layout().local_index(pe));
}

void MappedSlices::init_control(std::uint64_t slice_bytes) {
    ControlBlock& control = heap_->control();
    control.magic = control_magic;
    control.version = control_version;
    control.pe = job_.my_pe();
    control.slice_bytes = slice_bytes;
    // Without a number that all PEs of the host know, the process counts as running.
    const auto local = job_.local_pes();
    const bool seen = std::ranges::all_of(local, [this](int pe) { return job_.sees_process_of(pe); });
    const ProcessId own = job_.pes().process(job_.my_pe());
    control.process = seen ? own.pid : 0;
    control.process_start = own.start;
    control.npes = job_.npes();
    const ProcessId first = job_.pes().process(0);
    control.first_process = static_cast<std::int32_t>(first.pid);
    control.first_process_start = first.start;
}

Status MappedSlices::map_local_slices(const TransportMap& map, RemotePeers& peers) {
    const PeRange local = job_.local_pes();
    std::vector<std::byte*> slices;
    bool in_place = true;
    for (int i = 0; i < local.count; ++i) {
        std::byte* const place = memory_->slice(i);
        auto address = map.route(local.at(i)).maps() ? peers.map(local.at(i), place) : Result<void*>(nullptr);
        if (!address.ok()) return address.status();
        slices.push_back(static_cast<std::byte*>(address.value()));
        in_place = in_place && address.value() == place;
    }
    if (!in_place) local_slices_ = std::move(slices);
    return {};
}

// Mapped PEs get the fast path if they are consecutive and their slices are where the host's memory places them. Others
// are found in the table of slices, a few nanoseconds later.
void MappedSlices::fill_fast_map(bool maps_itself) {
    fast_.heap = reinterpret_cast<std::uintptr_t>(heap_->base());
    fast_.heap_bytes = heap_->tail();  // the memory behind it belongs to the runtime
    if (statics_.same_on_all_pes()) {
        fast_.statics = statics_.image().begin;
        fast_.statics_bytes = statics_.image().bytes;
        fast_.statics_offset = statics_.offset();
    }
    const PeRange local = job_.local_pes();
    const bool in_place = local_slices_.empty() && local.at(local.count - 1) - local.at(0) == local.count - 1;
    fast_.peers = in_place ? memory_->slices() : heap_->base();
    fast_.stride = memory_->stride();
    fast_.copy = choose_block_copy();
    fast_.sleepers = &memory_->sleepers();
    fast_.first_pe = static_cast<std::uint32_t>(in_place ? local.at(0) : job_.my_pe());
    fast_.mapped_pes = in_place ? static_cast<std::uint32_t>(local.count) : maps_itself ? 1U : 0U;
    fast_.all_mapped = fast_.mapped_pes == static_cast<std::uint32_t>(job_.npes()) ? 1U : 0U;
}

Result<SharingPes> MappedSlices::map_peers(const TransportMap& map, RemotePeers& peers) {
    if (Status done = map_local_slices(map, peers); !done.ok()) return done;
    std::vector<bool> mapped;
    for (const int pe : job_.local_pes()) mapped.push_back(slice_of(pe) != nullptr);
    auto sharing_pes = find_sharing_pes(job_.bootstrap(), job_.layout(), job_.my_pe(), std::move(mapped));
    if (!sharing_pes.ok()) return sharing_pes;
    const bool maps_itself = map.route(job_.my_pe()).maps();
    if (maps_itself && !local_slices_.empty())
        local_slices_[static_cast<std::size_t>(job_.local_index())] = heap_->base();
    fill_fast_map(maps_itself);
    return sharing_pes;
}

void MappedSlices::publish_finalized() {
    if (!heap_) return;
    ControlBlock& own = heap_->control();
    // First, so that a PE that dies in between counts as one that has died, not finalized.
    memory_->record_departure(own.last_barrier.load(std::memory_order_relaxed));
    // Release: pairs with the acquire load in JobLiveness.
    own.state.store(static_cast<std::uint32_t>(PeState::finalized), std::memory_order_release);
}

Status MappedSlices::restore_variables() {
    SymmetricGlobals* const data = statics_.data();
    return data != nullptr ? data->restore_private() : Status{};
}

std::byte* MappedSlices::slice_of(int pe) const {
    if (!job_.is_local(pe)) return nullptr;
    const int index = job_.layout().local_index(pe);
    return local_slices_.empty() ? memory_->slice(index) : local_slices_[static_cast<std::size_t>(index)];
}

void* MappedSlices::mapped(int pe, std::uint64_t offset) const {
    std::byte* const slice = slice_of(pe);
    const bool inside = offset < fast_.heap_bytes || offset - statics_.offset() < statics_.max_bytes();
    return slice != nullptr && inside ? slice + offset : nullptr;
}

ControlBlock* MappedSlices::control_of(int pe) const {
    if (!job_.is_local(pe)) return nullptr;
    return reinterpret_cast<ControlBlock*>(memory_->slice(job_.layout().local_index(pe)));
}

std::uint64_t MappedSlices::offset_of(const void* object) const {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object) - fast_.heap;
    if (offset < fast_.heap_bytes) return offset;
    if (!statics_.holds(object)) return no_offset;
    return statics_.offset() + (reinterpret_cast<std::uintptr_t>(object) - statics_.image().begin);
}

std::uint64_t MappedSlices::bytes_to_end(std::uint64_t offset) const {
    if (offset < fast_.heap_bytes) return fast_.heap_bytes - offset;
    return offset - statics_.offset() < statics_.image().bytes ? statics_.offset() + statics_.image().bytes - offset
                                                               : 0;
}

}  // namespace npushmem
