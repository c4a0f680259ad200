// One PE's runtime between init and finalize.
#pragma once

#include <memory>

#include "core/base/config.hpp"
#include "core/base/log.hpp"
#include "core/memory/collective_heap.hpp"
#include "core/runtime/departures.hpp"
#include "core/runtime/job_liveness.hpp"
#include "core/runtime/job_membership.hpp"
#include "core/runtime/job_transports.hpp"
#include "core/runtime/kernel_records.hpp"
#include "core/runtime/mapped_slices.hpp"
#include "core/runtime/npu_services.hpp"
#include "core/runtime/plugin_sources.hpp"
#include "core/runtime/runtime_reports.hpp"
#include "core/runtime/world_synchronization.hpp"
#include "core/team/team_table.hpp"

namespace npushmem {

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
    std::unique_ptr<KernelRecordsMemory> kernel_records;  // of PE 0, if the PEs share their records
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

    // Collective: completes everything and synchronises with the other PEs; then the destructor may run.
    Status finish();

    [[nodiscard]] int my_pe() const { return my_pe_; }
    [[nodiscard]] int npes() const { return npes_; }
    [[nodiscard]] const Settings& settings() const { return parts_.config->settings(); }
    [[nodiscard]] const Log& log() const { return *parts_.log; }
    [[nodiscard]] const JobMembership& job() const { return *parts_.job; }
    [[nodiscard]] const Waiter& waiter() const { return parts_.waiting->driving_waiter; }
    [[nodiscard]] MappedSlices& slices() { return *parts_.slices; }
    [[nodiscard]] const MappedSlices& slices() const { return *parts_.slices; }
    [[nodiscard]] JobTransports& transports() { return *parts_.transports; }
    [[nodiscard]] TeamTable& teams() { return *parts_.teams; }
    [[nodiscard]] RuntimeReports& reports() { return *parts_.reports; }
    [[nodiscard]] const RuntimeReports& reports() const { return *parts_.reports; }
    [[nodiscard]] WorldSynchronization& synchronization() { return synchronization_; }
    [[nodiscard]] CollectiveHeap& collective_heap() { return collective_heap_; }
    [[nodiscard]] NpuServices& npu() { return npu_; }

private:
    RuntimeParts parts_;
    int my_pe_;
    int npes_;
    WorldSynchronization synchronization_;
    WorldHeapPeers heap_peers_;
    CollectiveHeap collective_heap_;
    NpuServices npu_;
};

}  // namespace npushmem
