// SPDX-License-Identifier: BSD-3-Clause
// The slices that this PE loads from and stores to directly: its own one, with the symmetric heap and the executable's
// variables, and those of mapped PEs. Converts between addresses, offsets in a slice, and PEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/map/fast_map.hpp"
#include "core/memory/host_memory.hpp"
#include "core/memory/symmetric_heap.hpp"
#include "core/remote/remote_peers.hpp"
#include "core/runtime/job_membership.hpp"
#include "core/runtime/static_variables.hpp"

namespace npushmem {

class MappedSlices {
public:
    // `job` has exchanged its records and outlives this.
    MappedSlices(JobMembership& job, ProgramImage image);
    MappedSlices(const MappedSlices&) = delete;
    MappedSlices& operator=(const MappedSlices&) = delete;

    // Collective: creates one shared segment per host, and in this PE's slice the heap and the variables.
    Status create(const Settings& settings);
    // Collective: maps the slices of the peers that a transport maps, then fills the fast map.
    Result<SharingPes> map_peers(const TransportMap& map, RemotePeers& peers);
    // Marks this PE as finalized, for the PEs of its host. Does nothing if the heap does not exist.
    void publish_finalized();
    // Gives the executable its private variables back. The runtime ends with this PE's last access to the shared ones.
    Status restore_variables();

    [[nodiscard]] SymmetricHeap& heap() { return *heap_; }
    [[nodiscard]] const SymmetricHeap& heap() const { return *heap_; }
    [[nodiscard]] HostMemory& host_memory() { return *memory_; }
    [[nodiscard]] const HostMemory& host_memory() const { return *memory_; }
    [[nodiscard]] const StaticVariables& statics() const { return statics_; }
    // Returns the same object for as long as this lives; its content is final after map_peers.
    [[nodiscard]] const FastMap& fast_map() const { return fast_; }

    // Returns the offset of a symmetric object in every slice; no_offset if it does not begin in this PE's slice.
    static constexpr std::uint64_t no_offset = ~std::uint64_t{0};
    [[nodiscard]] std::uint64_t offset_of(const void* object) const;
    // Returns the number of bytes from such an offset to the end of the heap, or of the variables.
    [[nodiscard]] std::uint64_t bytes_to_end(std::uint64_t offset) const;
    // Returns the address of the slice of `pe` (0 <= pe < npes); null if it is not mapped.
    [[nodiscard]] std::byte* slice_of(int pe) const;
    // Returns the address of a slice offset on `pe`; null if its memory is not mapped here.
    [[nodiscard]] void* mapped(int pe, std::uint64_t offset) const;
    // Returns the control block of a PE of this host, whichever PEs the transports map; null for a PE of another host.
    [[nodiscard]] ControlBlock* control_of(int pe) const;
    // Returns whether the PE is one of this host whose process this PE does not see, and has ended. All PEs of the host
    // have called create() before. Any thread.
    [[nodiscard]] bool has_ended_unseen(int pe) const;

private:
    Status open_host_memory(std::uint64_t slice_bytes, const Settings& settings);
    [[nodiscard]] Result<SharedSegment> attach(const SegmentHandle& handle) const;
    void init_control(std::uint64_t slice_bytes);
    Status map_local_slices(const TransportMap& map, RemotePeers& peers);
    void fill_fast_map(bool maps_itself);

    JobMembership& job_;
    std::unique_ptr<HostMemory> memory_;
    std::unique_ptr<SymmetricHeap> heap_;
    StaticVariables statics_;
    // Of this host's PEs, by local index; null where not mapped. Empty: all are where the host's memory places them.
    std::vector<std::byte*> local_slices_;
    FastMap fast_;
};

}  // namespace npushmem
