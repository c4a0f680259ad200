#include "core/runtime/npu_binding.hpp"

#include <algorithm>

#include "core/npu/check/job_records.hpp"

namespace npushmem {

namespace {

// The range of PEs around this one whose memory is mapped at the fixed distance. The fast map may have fewer: only this
// PE if one mapped PE is elsewhere, and none if a transport without a map serves the PE itself.
npu::Window window_of(const JobMembership& job, const MappedSlices& slices) {
    const FastMap& map = slices.fast_map();
    const auto stride = static_cast<std::ptrdiff_t>(map.stride);
    const int me = job.my_pe();
    const auto in_place = [&](int pe) {
        const auto there = reinterpret_cast<std::uintptr_t>(slices.mapped(pe, 0));
        return there != 0 && there == map.heap + static_cast<std::uintptr_t>((pe - me) * stride);
    };
    int first = me;
    while (first > 0 && in_place(first - 1)) --first;
    int end = me + 1;
    while (end < job.npes() && in_place(end)) ++end;
    return {map.heap, map.heap_bytes, stride, me, first, end - first};
}

// Returns null if this PE checks its kernels alone.
std::unique_ptr<KernelRecordsLink> attach_kernel_records(const JobMembership& job, const MappedSlices& slices) {
    if (slices.heap().control().checking.records.load() != KernelRecords::kept) return nullptr;
    return KernelRecordsLink::attach(job.my_pe(), job.npes(),
                                     [&slices](int pe) -> ControlBlock& { return *slices.control_of(pe); });
}

}  // namespace

NpuBinding::MapFabric::MapFabric(const NpuResources& resources)
    : job_(resources.job),
      slices_(resources.slices),
      window_(window_of(job_, slices_)),
      chosen_(resources.remote_mode) {
    if (slices_.fast_map().all_mapped != 0) return;
    static_assert(npu::RemoteOperations::no_offset == MappedSlices::no_offset);
    const SliceAddressing places{[&slices = slices_](const void* address) { return slices.offset_of(address); },
                                 [&slices = slices_](std::uint64_t offset) { return slices.bytes_to_end(offset); }};
    direct_ = std::make_unique<NpuDirect>(places, resources.remote_peers, job_.npes());
    proxied_ =
        std::make_unique<NpuProxied>(places, resources.remote_peers, resources.waiting.budget, resources.waiting.os);
}

npu::RemoteOperations* NpuBinding::MapFabric::remote_operations(npu::RemoteMode way) const {
    if ((way == npu::RemoteMode::configured ? chosen_ : way) == npu::RemoteMode::proxy) return proxied_.get();
    return direct_.get();
}

int NpuBinding::MapFabric::my_pe() const { return job_.my_pe(); }

int NpuBinding::MapFabric::n_pes() const { return job_.npes(); }

// Mapped PEs that are not consecutive are not in the fast map. Kernels load and store their own memory directly, even
// if a transport without a map serves the PE itself.
void* NpuBinding::MapFabric::remote(const void* symmetric, int pe) const {
    if (void* there = slices_.fast_map().address(symmetric, pe); there != nullptr) return there;
    const std::uint64_t offset = slices_.offset_of(symmetric);
    const bool inside = offset != MappedSlices::no_offset && pe >= 0 && pe < n_pes();
    if (inside && pe == my_pe()) return const_cast<void*>(symmetric);
    return inside ? slices_.mapped(pe, offset) : nullptr;
}

NpuBinding::NpuBinding(const NpuResources& resources)
    : fabric_(resources),
      waiter_(resources.waiting.budget, resources.waiting.os, resources.waiting.counters, nullptr,
              &resources.waiting.progress),
      policy_(waiter_, resources.waiting.os, &resources.waiting.liveness, resources.job.npes(),
              &resources.waiting.progress) {}

Result<std::unique_ptr<NpuBinding>> NpuBinding::create(const NpuResources& resources) {
    const Settings& settings = resources.settings;
    std::unique_ptr<NpuBinding> binding(new NpuBinding(resources));
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
        binding->records_ = attach_kernel_records(resources.job, resources.slices);
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
