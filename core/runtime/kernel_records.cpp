#include "core/runtime/kernel_records.hpp"

#include <limits>
#include <utility>

namespace npushmem {

using npu::check::JobRecords;

std::unique_ptr<KernelRecordsMemory> KernelRecordsMemory::make(ControlBlock& own) {
    auto made = SharedSegment::create(JobRecords::bytes, {});
    if (!made.ok() || !made.value().commit(0, JobRecords::bytes).ok()) return nullptr;
    if (!JobRecords::make(made.value().descriptor())) return nullptr;
    own.checking.segment = made.value().handle();
    return std::unique_ptr<KernelRecordsMemory>(new KernelRecordsMemory(std::move(made).value()));
}

std::unique_ptr<KernelRecordsLink> KernelRecordsLink::attach(int my_pe, int npes, ControlBlockLookup control_of) {
    const SegmentHandle handle = control_of(0).checking.segment;
    if (handle.process == 0) return nullptr;
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

}  // namespace npushmem
