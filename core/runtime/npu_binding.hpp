// The emulated NPU of this PE, bound to the runtime: its fabric is the map of mapped peers, and a transport for the
// others; its waiting is the PE's.
#pragma once

#include <memory>

#include "core/npu/wait_policies.hpp"
#include "core/runtime/npu_direct.hpp"
#include "core/runtime/npu_proxied.hpp"
#include "core/runtime/wait_services.hpp"
#include "npushmem/npu/device.hpp"

namespace npushmem {

class Runtime;

class NpuBinding {
public:
    // Both outlive the binding.
    static Result<std::unique_ptr<NpuBinding>> create(Runtime& runtime, WaitServices& waiting);

    [[nodiscard]] npu::Device& device() { return *device_; }

private:
    class MapFabric final : public npu::Fabric {
    public:
        MapFabric(Runtime& runtime, WaitServices& waiting);
        [[nodiscard]] int my_pe() const override;
        [[nodiscard]] int n_pes() const override;
        [[nodiscard]] void* remote(const void* symmetric, int pe) const override;
        [[nodiscard]] npu::Window window() const override { return window_; }
        [[nodiscard]] npu::RemoteOperations* remote_operations(npu::RemoteMode way) const override;

    private:
        const Runtime& runtime_;
        npu::Window window_;
        npu::RemoteMode chosen_ = npu::RemoteMode::direct;
        // Null: every PE is mapped.
        std::unique_ptr<NpuDirect> direct_;
        std::unique_ptr<NpuProxied> proxied_;
    };

    NpuBinding(Runtime& runtime, WaitServices& waiting);

    MapFabric fabric_;
    Waiter waiter_;  // makes progress; knows no liveness: which PE matters differs from core to core
    npu::WaiterPolicy policy_;
    std::unique_ptr<npu::Device> device_;
};

}  // namespace npushmem
