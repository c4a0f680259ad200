// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/npu_services.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/npu/check/processes/job_records.hpp"
#include "core/npu/check/report/report_files.hpp"

namespace npushmem {

using npu::check::JobRecords;

std::unique_ptr<KernelRecordsMemory> KernelRecordsMemory::make(ControlBlock& own) {
    auto made = SharedSegment::create(JobRecords::bytes, {});
    if (!made.ok() || !made.value().commit(0, JobRecords::first_bytes).ok()) return nullptr;
    if (!JobRecords::make(made.value().descriptor())) return nullptr;
    own.checking.segment = made.value().handle();
    return std::unique_ptr<KernelRecordsMemory>(new KernelRecordsMemory(std::move(made).value()));
}

std::unique_ptr<KernelRecordsLink> KernelRecordsLink::attach(int my_pe, int npes, ControlBlockLookup control_of) {
    const SegmentHandle handle = control_of(0).checking.segment;
    if (!handle.given()) return nullptr;
    auto attached = SharedSegment::attach(handle);
    auto records = attached.ok() ? JobRecords::map(attached.value().descriptor()) : nullptr;
    if (!records) {
        // Sequentially consistent: this store precedes the PE's first kernel, so every PE that observes an effect of
        // that kernel sees it.
        control_of(my_pe).checking.records.store(KernelRecords::none);
        return nullptr;
    }
    return std::unique_ptr<KernelRecordsLink>(
        new KernelRecordsLink(my_pe, npes, std::move(control_of), std::move(attached).value(), std::move(records)));
}

bool KernelRecordsLink::complete() const {
    for (int pe = 0; pe < npes_; ++pe)
        if (control_of_(pe).checking.records.load() != KernelRecords::kept) return false;
    return true;
}

// Relaxed: a PE's own number.
std::uint64_t KernelRecordsLink::host_barrier() const {
    return control_of_(my_pe_).entered.load(std::memory_order_relaxed);
}

// Relaxed: a reader that observed a later effect of the host has acquired that effect.
bool KernelRecordsLink::host_called(int pe, std::uint64_t host_barrier) const {
    return control_of_(pe).checking.host_calls.load(std::memory_order_relaxed) > host_barrier;
}

void note_host_call(ControlBlock& own) {
    auto& calls = own.checking.host_calls;
    const std::uint64_t now = own.entered.load(std::memory_order_relaxed) + 1;
    if (calls.load(std::memory_order_relaxed) < now) calls.store(now, std::memory_order_relaxed);
    // Release: a PE that acquires an effect of the call then sees the number.
    std::atomic_thread_fence(std::memory_order_release);
}

void note_host_access(ControlBlock& own) {
    own.checking.host_calls.store(std::numeric_limits<std::uint64_t>::max(), std::memory_order_release);
}

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

// Every PE has the same objects, so the own heap knows those of all PEs. Behind the heap are the runtime's memory and
// global variables.
std::function<std::string(std::uint64_t, std::size_t)> refusal_of(const SymmetricHeap& heap) {
    return [&heap](std::uint64_t offset, std::size_t bytes) -> std::string {
        if (offset >= heap.tail() || heap.allocation_tracker() == nullptr) return {};
        const Status inside = heap.allocation_tracker()->check(offset, bytes);
        return inside.ok() ? std::string{} : "they " + inside.message();
    };
}

// Of the heaps and the global variables of all PEs that are mapped here.
std::optional<npu::check::SymmetricPlace> place_of(const JobMembership& job, const MappedSlices& slices,
                                                   std::uintptr_t address) {
    const auto* const there = reinterpret_cast<const void*>(address);
    if (const std::uint64_t offset = slices.offset_of(there); offset != MappedSlices::no_offset)
        return npu::check::SymmetricPlace{job.my_pe(), offset};
    for (int pe = 0; pe < job.npes(); ++pe) {
        const std::uint64_t offset = address - reinterpret_cast<std::uintptr_t>(slices.slice_of(pe));
        if (slices.mapped(pe, offset) == there) return npu::check::SymmetricPlace{pe, offset};
    }
    return std::nullopt;
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
      policy_(
          waiter_, resources.waiting.os, &resources.waiting.liveness,
          [&liveness = resources.waiting.liveness] { return liveness.awaited_pes(); },
          &resources.waiting.progress.drive, &resources.waiting.recorder) {}

Status NpuBinding::share_steps(const NpuResources& resources, const SegmentHandle& memory) {
    if (!records_)
        return {Code::config, "npushmem-run --npu-check needs PEs that all map each other's memory, on one host"};
    auto attached = SharedSegment::attach(memory);
    if (!attached.ok()) return attached.status().within("the memory of npushmem-run's scheduler");
    steps_ = std::make_unique<npu::check::StepSharing>(
        npu::check::StepSharing{.pes = resources.job.npes(),
                                .memory = std::move(attached).value(),
                                .host_barrier =
                                    [&slices = resources.slices](int pe) {
                                        // Acquire: the host has published its launches before.
                                        return slices.control_of(pe)->entered.load(std::memory_order_acquire);
                                    },
                                .host_waits =
                                    [&slices = resources.slices](int pe) {
                                        const auto wait = slices.control_of(pe)->progress.wait.read();
                                        return wait && wait->since != 0;
                                    }});
    return {};
}

Status NpuBinding::check_kernels(const NpuResources& resources, npu::DeviceConfig& config) {
    const Settings& settings = resources.settings;
    const auto shared = npu::check::StepTurns::parse(settings.npu_schedule);
    const auto schedule = shared ? npu::Schedule{} : npu::Schedule::parse(settings.npu_schedule);
    if (!schedule.ok()) return schedule.status().within("NPUSHMEM_NPU_SCHEDULE");
    if (Status status = npu::check::ReportFiles::validate(settings.npu_check_report); !status.ok())
        return status.within("NPUSHMEM_NPU_CHECK_REPORT");
    records_ = attach_kernel_records(resources.job, resources.slices);
    if (shared)
        if (Status status = share_steps(resources, *shared); !status.ok()) return status;
    auto hooks = npu::check::job_hooks(
        schedule.value(), fabric_,
        {records_.get(), steps_.get(), settings.npu_check_report, refusal_of(resources.slices.heap()),
         [&job = resources.job, &slices = resources.slices](std::uintptr_t address) {
             return place_of(job, slices, address);
         }});
    if (!hooks.ok()) return hooks.status().within("NPUSHMEM_NPU_SCHEDULE");
    config.hooks = std::move(hooks).value();
    config.launch_timeout = std::max<std::chrono::nanoseconds>(npu::checked_launch_timeout, settings.timeout);
    return {};
}

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
    if (!settings.npu_device.empty()) {
        if (Status status = config.apply_file(settings.npu_device); !status.ok())
            return status.within("NPUSHMEM_NPU_DEVICE");
        const std::size_t heap = resources.slices.fast_map().heap_bytes;
        if (config.rules.gm_bytes > 0 && heap > config.rules.gm_bytes)
            return Status{Code::config,
                          fmt::format("NPUSHMEM_NPU_DEVICE: gm_bytes is {}, but the symmetric memory of a "
                                      "PE has {} bytes; set NPUSHMEM_SYMMETRIC_SIZE",
                                      config.rules.gm_bytes, heap)};
    }
    binding->unchecked_ = config;
    if (settings.npu_check)
        if (Status status = binding->check_kernels(resources, config); !status.ok()) return status;
    auto device = npu::Device::create(config, binding->fabric_, binding->policy_);
    if (!device.ok()) return device.status().within("emulated NPU");
    binding->device_ = std::move(device).value();
    return binding;
}

Result<std::unique_ptr<TeamDevice>> NpuBinding::team_device(const Members& members) {
    return TeamDevice::create(unchecked_, fabric_, policy_, members);
}

Result<npu::Device*> NpuServices::device() {
    const std::lock_guard guard(lock_);
    if (!binding_) {
        auto made = NpuBinding::create(resources_);
        if (!made.ok()) return made.status();
        binding_ = std::move(made).value();
    }
    return &binding_->device();
}

Result<std::unique_ptr<TeamDevice>> NpuServices::team_device(const Members& members) {
    const auto first = device();
    if (!first.ok()) return first.status();
    return binding_->team_device(members);
}

Status NpuServices::bind(npu::Stream& stream) {
    const auto found = device();
    if (!found.ok()) return found.status();
    const std::lock_guard guard(lock_);
    if (!stream.has_device()) stream = npu::Stream(*found.value());
    if (stream.belongs_to(*found.value())) return {};
    return {Code::argument,
            "the stream belongs to the device of another world, or of one that has ended; make its world the current "
            "one, or make another stream"};
}

void NpuServices::close() {
    if (binding_) (void)binding_->device().synchronize();
    binding_.reset();
}

}  // namespace npushmem
