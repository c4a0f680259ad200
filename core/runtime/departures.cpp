// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/departures.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

namespace npushmem {

// Relaxed: JobLiveness checks again. After the last barrier all PEs finalize, and each keeps its memory until all have
// passed: a wait for a finalized PE still ends.
bool Departures::any() const {
    if (passed_last_barrier_.load(std::memory_order_relaxed)) return false;
    return slices_.host_memory().has_departures() ||
           std::ranges::any_of(slices_.heap().control().departures,
                               [](const auto& slot) { return slot.load(std::memory_order_relaxed) != 0; });
}

void Departures::publish(std::uint64_t last_barrier) {
    // Relaxed: this process reads the flag, see `any`; publish_finalized releases the number.
    passed_last_barrier_.store(true, std::memory_order_relaxed);
    slices_.heap().control().last_barrier.store(last_barrier, std::memory_order_relaxed);
    slices_.publish_finalized();
}

// The other PEs arrive within moments, unless they have not called finalize: then they wait for this PE at a barrier.
Status Departures::wait_for_others(JobTransports& transports, std::uint64_t last_barrier) {
    constexpr std::chrono::milliseconds departure_delay{500};
    std::unique_ptr<DelayedTask> departure;
    if (job_.layout().hosts() > 1)
        departure = DelayedTask::start(departure_delay, [this, &transports, last_barrier](const DelayedTask& task) {
            send(transports, last_barrier, task);
        });
    return job_.bootstrap().barrier();
}

// Sends the departure to the PEs of other hosts that this PE has connected to. They include all PEs that wait for a
// signal from it.
void Departures::send(JobTransports& transports, std::uint64_t last_barrier, const DelayedTask& task) const {
    const Departure own{job_.my_pe(), static_cast<std::uint32_t>(last_barrier)};
    const RemoteAccess::WaitFunction until_cancelled = [&task](const std::function<bool()>& ready, const WaitFor&) {
        while (!ready())
            if (task.wait_for_cancel(std::chrono::milliseconds(1)))
                return Status{Code::timeout, "the other PEs have arrived"};
        return Status{};
    };
    for (const int pe : transports.remote_peers().connected()) {
        if (job_.is_local(pe)) continue;
        npushmem_atomic op{};
        op.pe = pe;
        op.operation = NPUSHMEM_ATOMIC_SET;
        op.width = 8;
        op.offset = offsetof(ControlBlock, departures) + departure_slot(job_.my_pe()) * sizeof(std::uint64_t);
        op.operand = own.packed();
        // A PE that does not receive it finds this PE gone when the bootstrap's barrier has failed.
        (void)transports.remote().atomic(op, RemoteAccess::Completion::deferred, &until_cancelled);
    }
}

}  // namespace npushmem
