// Completion and synchronisation over all PEs: quiet of the default context, and the barriers of the world.
#pragma once

#include <string_view>

#include "core/memory/collective_heap.hpp"
#include "core/remote/remote_access.hpp"
#include "core/runtime/mapped_slices.hpp"
#include "core/team/team_barrier.hpp"

namespace npushmem {

class WorldSynchronization {
public:
    // All outlive this. `slices` has mapped its peers.
    WorldSynchronization(const MappedSlices& slices, RemoteAccess& remote, TeamBarrier& world)
        : all_mapped_(slices.fast_map().all_mapped != 0), remote_(remote), world_(world) {}
    WorldSynchronization(const WorldSynchronization&) = delete;
    WorldSynchronization& operator=(const WorldSynchronization&) = delete;

    // Completes all operations of this PE on the default context and makes them visible.
    Status quiet();
    Status sync_all() { return world_.sync(); }
    Status barrier_all() { return barrier_all(world_.default_plan()); }
    // Uses the algorithm that `text` names, in the form of NPUSHMEM_BARRIER_ALGO.
    Status barrier_all(std::string_view text);
    [[nodiscard]] TeamBarrier& world() const { return world_; }

private:
    Status barrier_all(const barrier::Plan& plan);

    bool all_mapped_;  // a copy from the fast map, which does not change any more
    RemoteAccess& remote_;
    TeamBarrier& world_;
};

// The other PEs, as the collective heap sees them.
class WorldHeapPeers final : public HeapPeers {
public:
    // All outlive this.
    WorldHeapPeers(const JobMembership& job, const MappedSlices& slices, RemoteAccess& remote,
                   WorldSynchronization& synchronization)
        : job_(job), slices_(slices), remote_(remote), synchronization_(synchronization) {}

    [[nodiscard]] int my_pe() const override { return job_.my_pe(); }
    [[nodiscard]] int npes() const override { return job_.npes(); }
    Status heap_barrier() override { return synchronization_.barrier_all(); }
    [[nodiscard]] std::uint64_t next_barrier() const override { return synchronization_.world().barriers() + 1; }
    Result<HeapRecord> record_of(int pe, unsigned parity) override;

private:
    const JobMembership& job_;
    const MappedSlices& slices_;
    RemoteAccess& remote_;
    WorldSynchronization& synchronization_;
};

}  // namespace npushmem
