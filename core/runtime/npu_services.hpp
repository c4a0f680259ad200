// SPDX-License-Identifier: BSD-3-Clause
// What a PE provides to its kernels: the emulated NPU, which the first user creates, and the notes with which the
// kernel checker follows the host's calls.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "core/base/shared_segment.hpp"
#include "core/memory/control_block.hpp"
#include "core/npu/check/processes/job_records.hpp"
#include "core/npu/check/processes/step_turns.hpp"
#include "core/npu/wait_policies.hpp"
#include "core/remote/npu_remote.hpp"
#include "core/runtime/job_liveness.hpp"
#include "core/runtime/mapped_slices.hpp"
#include "core/runtime/team_device.hpp"
#include "npushmem/npu/device.hpp"

namespace npushmem {

// The memory in which the kernel checkers of all PEs of a host record what kernels do, and how each PE finds it.

// Made by PE 0 before the start's last barrier. A failure leaves every process to check for itself.
class KernelRecordsMemory {
public:
    // Null: there is no memory for it.
    static std::unique_ptr<KernelRecordsMemory> make(ControlBlock& own);

private:
    explicit KernelRecordsMemory(SharedSegment memory) : memory_(std::move(memory)) {}

    SharedSegment memory_;
};

// Of one PE, which maps every PE.
class KernelRecordsLink final : public npu::check::JobLink {
public:
    using ControlBlockLookup = std::function<ControlBlock&(int pe)>;

    // Null: this PE cannot use the records, which the others learn.
    static std::unique_ptr<KernelRecordsLink> attach(int my_pe, int npes, ControlBlockLookup control_of);

    [[nodiscard]] npu::check::JobRecords& records() const override { return *records_; }
    [[nodiscard]] bool complete() const override;
    [[nodiscard]] std::uint64_t host_barrier() const override;
    [[nodiscard]] bool host_called(int pe, std::uint64_t host_barrier) const override;

private:
    KernelRecordsLink(int my_pe, int npes, ControlBlockLookup control_of, SharedSegment memory,
                      std::shared_ptr<npu::check::JobRecords> records)
        : my_pe_(my_pe),
          npes_(npes),
          control_of_(std::move(control_of)),
          memory_(std::move(memory)),
          records_(std::move(records)) {}

    int my_pe_;
    int npes_;
    ControlBlockLookup control_of_;
    SharedSegment memory_;
    std::shared_ptr<npu::check::JobRecords> records_;
};

// Before this PE's host orders something by other means than a host barrier.
void note_host_call(ControlBlock& own);
// From now on it may at any time.
void note_host_access(ControlBlock& own);

// Binds the emulated NPU of this PE to the runtime: cores use mapped peers directly and a transport for the others, and
// wait as the PE does.

// The parts of the runtime that kernels use; all outlive the NPU.
struct NpuResources {
    const Settings& settings;
    const JobMembership& job;
    const MappedSlices& slices;
    RemotePeers& remote_peers;
    WaitServices& waiting;
    npu::RemoteMode remote_mode;  // for PEs that are not mapped
};

class NpuBinding {
public:
    static Result<std::unique_ptr<NpuBinding>> create(const NpuResources& resources);

    [[nodiscard]] npu::Device& device() { return *device_; }
    // A device of its own for these PEs, this one among them. Its kernels are not checked.
    Result<std::unique_ptr<TeamDevice>> team_device(const Members& members);

private:
    class MapFabric final : public npu::Fabric {
    public:
        explicit MapFabric(const NpuResources& resources);
        [[nodiscard]] int my_pe() const override;
        [[nodiscard]] int n_pes() const override;
        [[nodiscard]] void* remote(const void* symmetric, int pe) const override;
        [[nodiscard]] npu::Window window() const override { return window_; }
        [[nodiscard]] npu::RemoteOperations* remote_operations(npu::RemoteMode way) const override;

    private:
        const JobMembership& job_;
        const MappedSlices& slices_;
        npu::Window window_;
        npu::RemoteMode chosen_;
        // Null if every PE is mapped.
        std::unique_ptr<NpuDirect> direct_;
        std::unique_ptr<NpuProxied> proxied_;
    };

    explicit NpuBinding(const NpuResources& resources);
    Status check_kernels(const NpuResources& resources, npu::DeviceConfig& config);
    // The schedule is the memory of npushmem-run's scheduler.
    Status share_steps(const NpuResources& resources, const SegmentHandle& memory);

    MapFabric fabric_;
    Waiter waiter_;  // makes progress; has no liveness, because the PEs that matter differ from core to core
    npu::WaiterPolicy policy_;
    std::unique_ptr<KernelRecordsLink> records_;
    std::unique_ptr<npu::check::StepSharing> steps_;
    npu::DeviceConfig unchecked_;  // without the hooks of the checker
    std::unique_ptr<npu::Device> device_;
};

class NpuServices {
public:
    explicit NpuServices(const NpuResources& resources)
        : resources_(resources),
          checks_kernels_(resources.settings.npu_check),
          control_(resources.slices.heap().control()) {}
    NpuServices(const NpuServices&) = delete;
    NpuServices& operator=(const NpuServices&) = delete;

    // Returns this PE's emulated NPU, which the first call creates. Any thread.
    Result<npu::Device*> device();
    // Another device of this PE, whose kernels number the PEs as these members, until close. Any thread.
    Result<std::unique_ptr<TeamDevice>> team_device(const Members& members);
    // Gives a stream without a device this one. Code::argument: it has another one. Any thread.
    Status bind(npu::Stream& stream);
    // Completes the kernels that are still queued, then destroys the NPU. No other thread uses it any more.
    void close();

    // Tells the kernel checker that this PE's host is about to order accesses by other means than a barrier of all PEs.
    void note_host_call() {
        if (checks_kernels_) npushmem::note_host_call(control_);
    }
    // Tells the kernel checker that the host gets the address of another PE's memory, through which it may order
    // accesses at any time.
    void note_host_access() {
        if (checks_kernels_) npushmem::note_host_access(control_);
    }

private:
    NpuResources resources_;
    bool checks_kernels_;
    ControlBlock& control_;  // the own one
    std::mutex lock_;
    std::unique_ptr<NpuBinding> binding_;  // under lock_
};

}  // namespace npushmem
