// The emulated NPU of this PE, bound to the runtime: its fabric is the map of mapped peers, and a transport for the
// others; its waiting is the PE's.
#pragma once

#include <memory>

#include "core/npu/waiter_policy.hpp"
#include "core/runtime/npu_remote.hpp"
#include "core/runtime/waiting.hpp"
#include "npushmem/npu/device.hpp"

namespace npushmem {

class NpuBinding {
public:
    // Both outlive the binding.
    static Result<std::unique_ptr<NpuBinding>> create(Runtime& runtime, Waiting& waiting);

    [[nodiscard]] npu::Device& device() { return *device_; }

private:
    class MapFabric final : public npu::Fabric {
    public:
        explicit MapFabric(Runtime& runtime);
        [[nodiscard]] int my_pe() const override;
        [[nodiscard]] int n_pes() const override;
        [[nodiscard]] void* remote(const void* symmetric, int pe) const override;
        [[nodiscard]] npu::Window window() const override;
        [[nodiscard]] npu::RemoteOperations* remote_operations() const override { return unmapped_.get(); }

    private:
        const Runtime& runtime_;
        std::unique_ptr<NpuRemote> unmapped_;  // null: every PE is mapped
    };

    NpuBinding(Runtime& runtime, Waiting& waiting);

    MapFabric fabric_;
    Waiter waiter_;  // makes progress; knows no liveness: which PE matters differs from core to core
    npu::WaiterPolicy policy_;
    std::unique_ptr<npu::Device> device_;
};

}  // namespace npushmem
