#include "core/runtime/npu_binding.hpp"

#include "npushmem/npu/checked_hooks.hpp"

namespace npushmem {

npu::Window NpuBinding::MapFabric::window() const {
    return {map_.heap,
            map_.heap_bytes,
            static_cast<std::ptrdiff_t>(map_.stride),
            my_pe_,
            static_cast<int>(map_.first_pe),
            static_cast<int>(map_.mapped_pes)};
}

NpuBinding::NpuBinding(const FastMap& map, int my_pe, int npes, Waiting& waiting)
    : fabric_(map, my_pe, npes),
      waiter_(waiting.budget, waiting.os, waiting.counters, nullptr, &waiting.progress),
      policy_(waiter_, waiting.os, &waiting.liveness, npes) {}

Result<std::unique_ptr<NpuBinding>> NpuBinding::create(const Settings& settings, const FastMap& map, int my_pe,
                                                       int npes, Waiting& waiting) {
    std::unique_ptr<NpuBinding> binding(new NpuBinding(map, my_pe, npes, waiting));
    npu::DeviceConfig config;
    config.blocks = static_cast<int>(settings.npu_blocks);
    config.vector_cores = static_cast<int>(settings.npu_vector_cores);
    config.wait_timeout = settings.timeout;
    const auto barrier = npu::BarrierChoice::parse(settings.npu_barrier);
    if (!barrier.ok()) return barrier.status().within("NPUSHMEM_NPU_BARRIER");
    config.barrier = barrier.value();
    if (settings.npu_check) {
        const auto schedule = npu::Schedule::parse(settings.npu_schedule);
        if (!schedule.ok()) return schedule.status().within("NPUSHMEM_NPU_SCHEDULE");
        auto hooks = npu::checked_hooks(schedule.value(), binding->fabric_);
        if (!hooks.ok()) return hooks.status().within("NPUSHMEM_NPU_SCHEDULE");
        config.hooks = std::move(hooks).value();
    }
    auto device = npu::Device::create(config, binding->fabric_, binding->policy_);
    if (!device.ok()) return device.status().within("emulated NPU");
    binding->device_ = std::move(device).value();
    return binding;
}

}  // namespace npushmem
