// The emulated NPU of this PE, bound to the runtime: its fabric is the map of mapped peers, its waiting is the PE's.
#pragma once

#include <memory>

#include "core/npu/waiter_policy.hpp"
#include "core/ops/fast_map.hpp"
#include "core/runtime/waiting.hpp"
#include "npushmem/npu/device.hpp"

namespace npushmem {

class NpuBinding {
public:
    // Everything referred to outlives the binding.
    static Result<std::unique_ptr<NpuBinding>> create(const Settings& settings, const FastMap& map, int my_pe, int npes,
                                                      Waiting& waiting);

    [[nodiscard]] npu::Device& device() { return *device_; }

private:
    // Peers that are not mapped have no address: a kernel gets null and says so.
    class MapFabric final : public npu::Fabric {
    public:
        MapFabric(const FastMap& map, int my_pe, int npes) : map_(map), my_pe_(my_pe), npes_(npes) {}
        [[nodiscard]] int my_pe() const override { return my_pe_; }
        [[nodiscard]] int n_pes() const override { return npes_; }
        [[nodiscard]] void* remote(const void* symmetric, int pe) const override { return map_.address(symmetric, pe); }
        [[nodiscard]] npu::Window window() const override;

    private:
        const FastMap& map_;
        int my_pe_;
        int npes_;
    };

    NpuBinding(const FastMap& map, int my_pe, int npes, Waiting& waiting);

    MapFabric fabric_;
    Waiter waiter_;  // makes progress; knows no liveness: which PE matters differs from core to core
    npu::WaiterPolicy policy_;
    std::unique_ptr<npu::Device> device_;
};

}  // namespace npushmem
