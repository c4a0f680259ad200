#include "core/runtime/npu_binding.hpp"

#include <algorithm>

#include "core/npu/check/job_records.hpp"
#include "core/runtime/runtime.hpp"

namespace npushmem {

namespace {

// The range of PEs around this one whose memory is mapped at the fixed distance. The fast map may have fewer: only this
// PE if one mapped PE is elsewhere, and none if a transport without a map serves the PE itself.
npu::Window window_of(const Runtime& runtime) {
    const FastMap& map = runtime.fast_map();
    const auto stride = static_cast<std::ptrdiff_t>(map.stride);
    const int me = runtime.my_pe();
    const auto in_place = [&](int pe) {
        const auto there = reinterpret_cast<std::uintptr_t>(runtime.mapped(pe, 0));
        return there != 0 && there == map.heap + static_cast<std::uintptr_t>((pe - me) * stride);
    };
    int first = me;
    while (first > 0 && in_place(first - 1)) --first;
    int end = me + 1;
    while (end < runtime.npes() && in_place(end)) ++end;
    return {map.heap, map.heap_bytes, stride, me, first, end - first};
}

}  // namespace

NpuBinding::MapFabric::MapFabric(Runtime& runtime, WaitServices& waiting)
    : runtime_(runtime), window_(window_of(runtime)) {
    if (runtime.fast_map().all_mapped != 0) return;
    static_assert(npu::RemoteOperations::no_offset == Runtime::no_offset);
    const SliceAddressing places{[&runtime](const void* address) { return runtime.offset_of(address); },
                                 [&runtime](std::uint64_t offset) { return runtime.bytes_to_end(offset); }};
    chosen_ = runtime.remote_mode().mode;
    direct_ = std::make_unique<NpuDirect>(places, runtime.remote_peers(), runtime.npes());
    proxied_ = std::make_unique<NpuProxied>(places, runtime.remote_peers(), waiting.budget, waiting.os);
}

npu::RemoteOperations* NpuBinding::MapFabric::remote_operations(npu::RemoteMode way) const {
    if ((way == npu::RemoteMode::configured ? chosen_ : way) == npu::RemoteMode::proxy) return proxied_.get();
    return direct_.get();
}

int NpuBinding::MapFabric::my_pe() const { return runtime_.my_pe(); }

int NpuBinding::MapFabric::n_pes() const { return runtime_.npes(); }

// Mapped PEs that are not consecutive are not in the fast map. Kernels load and store their own memory directly, even
// if a transport without a map serves the PE itself.
void* NpuBinding::MapFabric::remote(const void* symmetric, int pe) const {
    if (void* there = runtime_.fast_map().address(symmetric, pe); there != nullptr) return there;
    const std::uint64_t offset = runtime_.offset_of(symmetric);
    const bool inside = offset != Runtime::no_offset && pe >= 0 && pe < runtime_.npes();
    if (inside && pe == my_pe()) return const_cast<void*>(symmetric);
    return inside ? runtime_.mapped(pe, offset) : nullptr;
}

NpuBinding::NpuBinding(Runtime& runtime, WaitServices& waiting)
    : fabric_(runtime, waiting),
      waiter_(waiting.budget, waiting.os, waiting.counters, nullptr, &waiting.progress),
      policy_(waiter_, waiting.os, &waiting.liveness, runtime.npes(), &waiting.progress) {}

Result<std::unique_ptr<NpuBinding>> NpuBinding::create(Runtime& runtime, WaitServices& waiting) {
    const Settings& settings = runtime.settings();
    std::unique_ptr<NpuBinding> binding(new NpuBinding(runtime, waiting));
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
        binding->records_ = runtime.attach_kernel_records();
        auto hooks = npu::check::job_hooks(schedule.value(), binding->fabric_, binding->records_.get());
        if (!hooks.ok()) return hooks.status().within("NPUSHMEM_NPU_SCHEDULE");
        config.hooks = std::move(hooks).value();
        config.launch_timeout = std::max<std::chrono::nanoseconds>(npu::checked_launch_timeout, settings.timeout);
    }
    auto device = npu::Device::create(config, binding->fabric_, binding->policy_);
    if (!device.ok()) return device.status().within("emulated NPU");
    binding->device_ = std::move(device).value();
    return binding;
}

}  // namespace npushmem
