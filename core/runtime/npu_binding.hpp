// Binds the emulated NPU of this PE to the runtime: cores use mapped peers directly and a transport for the others, and
// wait as the PE does.
#pragma once

#include <memory>

#include "core/npu/wait_policies.hpp"
#include "core/remote/npu_remote.hpp"
#include "core/runtime/job_liveness.hpp"
#include "core/runtime/kernel_records.hpp"
#include "core/runtime/mapped_slices.hpp"
#include "npushmem/npu/device.hpp"

namespace npushmem {

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

    MapFabric fabric_;
    Waiter waiter_;  // makes progress; has no liveness, because the PEs that matter differ from core to core
    npu::WaiterPolicy policy_;
    std::unique_ptr<KernelRecordsLink> records_;
    std::unique_ptr<npu::Device> device_;
};

}  // namespace npushmem
