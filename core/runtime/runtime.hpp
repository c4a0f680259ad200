// SPDX-License-Identifier: BSD-3-Clause
// One PE's runtime between init and finalize.
#pragma once

#include <memory>
#include <string_view>

#include "core/base/config.hpp"
#include "core/base/log.hpp"
#include "core/coll/group.hpp"
#include "core/memory/collective_heap.hpp"
#include "core/memory/registered_buffers.hpp"
#include "core/remote/remote_access.hpp"
#include "core/runtime/departures.hpp"
#include "core/runtime/job_liveness.hpp"
#include "core/runtime/job_membership.hpp"
#include "core/runtime/job_transports.hpp"
#include "core/runtime/mapped_slices.hpp"
#include "core/runtime/npu_services.hpp"
#include "core/runtime/plugin_sources.hpp"
#include "core/runtime/runtime_reports.hpp"
#include "core/team/team_barrier.hpp"
#include "core/team/team_table.hpp"

namespace npushmem {

// Completion and synchronisation over all PEs: quiet of the default context, and the barriers of the world.

class WorldSynchronization {
public:
    // All outlive this. `slices` has mapped its peers.
    WorldSynchronization(const MappedSlices& slices, RemoteAccess& remote, TeamBarrier& world)
        : all_mapped_(slices.fast_map().all_mapped != 0), remote_(remote), world_(world) {}
    WorldSynchronization(const WorldSynchronization&) = delete;
    WorldSynchronization& operator=(const WorldSynchronization&) = delete;

    // Completes all operations of this PE on the default context and makes them visible.
    Status quiet();
    // The same, and the signals of earlier barriers and collectives.
    Status complete();
    Status sync_all() { return world_.sync(); }
    Status barrier_all() {
        if (all_mapped_) [[likely]]
            return world_.sync();
        return coll::sync_after(quiet(), [this] { return world_.sync(); });
    }
    // sync_all by npushmem's own means, whatever library serves the program's barriers.
    Status own_sync_all() { return world_.sync(world_.default_plan()); }
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
                   WorldSynchronization& synchronization, TeamTable& teams);

    [[nodiscard]] int my_pe() const override { return job_.my_pe(); }
    [[nodiscard]] PeRange pes() const override { return teams_.living().members().range(); }
    [[nodiscard]] bool heaps_may_differ() const override { return teams_.living_generation() > 0; }
    Status heap_barrier() override;
    // Barriers of different teams have different numbers.
    [[nodiscard]] std::uint64_t next_barrier() const override {
        return (teams_.living_generation() << 48) + teams_.living().barrier().barriers() + 1;
    }
    Result<HeapRecord> record_of(int pe, unsigned parity) override;
    [[nodiscard]] CallSums* sums() override { return teams_.living_generation() == 0 ? sums_.get() : nullptr; }

private:
    // Up to this many PEs compare their records faster.
    static constexpr int max_compared = 8;

    Result<std::uint64_t> sum_of_host(std::size_t host, unsigned parity);
    // Reads from a PE's slice.
    template <class Value>
    Result<Value> read(int pe, std::uint64_t offset);

    const JobMembership& job_;
    const MappedSlices& slices_;
    RemoteAccess& remote_;
    WorldSynchronization& synchronization_;
    TeamTable& teams_;
    std::unique_ptr<CallSums> sums_;  // null: the PEs compare their records
};

// The parts of a runtime, in the order in which start-up creates them. They are destroyed in reverse, also after a
// start that failed; parts that it did not reach are null. Parts refer to earlier ones, and `waiting` asks later ones
// until their end, so each keeps its address.
struct RuntimeParts {
    RuntimeParts() = default;
    RuntimeParts(RuntimeParts&&) = default;
    RuntimeParts& operator=(RuntimeParts&&) = delete;
    // Restores the executable's private variables first, while all other parts exist.
    ~RuntimeParts();

    std::unique_ptr<Config> config;
    std::unique_ptr<Log> log;
    std::unique_ptr<PluginServices> services;
    std::unique_ptr<JobMembership> job;
    std::unique_ptr<WaitServices> waiting;
    std::unique_ptr<MappedSlices> slices;
    std::unique_ptr<Departures> departures;
    std::unique_ptr<JobTransports> transports;
    std::unique_ptr<KernelRecordsMemory> kernel_records;    // of PE 0, if the PEs share their records
    std::unique_ptr<coll::CollectivesLibrary> collectives;  // null: npushmem's own
    std::unique_ptr<TeamTable> teams;
    std::unique_ptr<RuntimeReports> reports;
    npu::RemoteMode remote_mode = npu::RemoteMode::direct;  // of kernels, for PEs that are not mapped
};

class Runtime {
public:
    // `parts` are complete, see start_runtime.
    explicit Runtime(RuntimeParts parts);
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    // Collective: completes everything and synchronises with the other PEs, with NPUSHMEM_ON_PEER_DEATH=survive with
    // the living; then the destructor may run.
    Status finish();

    [[nodiscard]] int my_pe() const { return my_pe_; }
    [[nodiscard]] int npes() const { return npes_; }
    [[nodiscard]] const Settings& settings() const { return parts_.config->settings(); }
    [[nodiscard]] const Log& log() const { return *parts_.log; }
    [[nodiscard]] const JobMembership& job() const { return *parts_.job; }
    [[nodiscard]] const Waiter& waiter() const { return parts_.waiting->driving_waiter; }
    [[nodiscard]] JobLiveness& liveness() { return parts_.waiting->liveness; }
    [[nodiscard]] MappedSlices& slices() { return *parts_.slices; }
    [[nodiscard]] const MappedSlices& slices() const { return *parts_.slices; }
    [[nodiscard]] JobTransports& transports() { return *parts_.transports; }
    [[nodiscard]] TeamTable& teams() { return *parts_.teams; }
    [[nodiscard]] RuntimeReports& reports() { return *parts_.reports; }
    [[nodiscard]] const RuntimeReports& reports() const { return *parts_.reports; }
    [[nodiscard]] WorldSynchronization& synchronization() { return synchronization_; }
    [[nodiscard]] CollectiveHeap& collective_heap() { return collective_heap_; }
    [[nodiscard]] RegisteredBuffers& buffers() { return buffers_; }
    [[nodiscard]] const RegisteredBuffers& buffers() const { return buffers_; }
    [[nodiscard]] NpuServices& npu() { return npu_; }

private:
    Status finish_with_all();
    Status finish_with_the_living(const Status& failed);

    RuntimeParts parts_;
    int my_pe_;
    int npes_;
    WorldSynchronization synchronization_;
    WorldHeapPeers heap_peers_;
    CollectiveHeap collective_heap_;
    RegisteredBuffers buffers_;
    NpuServices npu_;
    bool ended_with_all_ = false;  // no PE waits for this one any more
};

}  // namespace npushmem
