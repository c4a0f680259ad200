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

namespace {

Status put_departure(RemoteAccess& remote, int to, const Departure& departure,
                     const RemoteAccess::WaitFunction& waiter) {
    npushmem_atomic op{};
    op.pe = to;
    op.operation = NPUSHMEM_ATOMIC_SET;
    op.width = 8;
    op.offset = offsetof(ControlBlock, departures) + departure_slot(departure.pe) * sizeof(std::uint64_t);
    op.operand = departure.packed();
    return remote.atomic(op, RemoteAccess::Completion::deferred, &waiter);
}

}  // namespace

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
        // A PE that does not receive it finds this PE gone when the bootstrap's barrier has failed.
        (void)put_departure(transports.remote(), pe, own, until_cancelled);
    }
}

// PEs of this host see the process too, or find the departure in their control blocks.
void Departures::report_death(JobTransports& transports, int dead) {
    const std::lock_guard guard(reports_lock_);
    if (reports_ended_ || job_.layout().hosts() == 1 || !reported_.insert(dead).second) return;
    for (const int pe : job_.local_pes())
        if (!job_.is_local(dead))
            // Release. Partner: the acquire in JobLiveness.
            slices_.control_of(pe)->departures[departure_slot(dead)].store(Departure{dead, 0}.packed(),
                                                                           std::memory_order_release);
    if (!remote_) remote_ = std::make_unique<RemoteAccess>(transports.remote_peers());
    reports_.push_back(DelayedTask::start(std::chrono::milliseconds(0),
                                          [this, dead](const DelayedTask& task) { send_death(dead, task); }));
}

// Waits for no PE long, because any of them may be dead too; asks those again that had no room or no connection.
void Departures::send_death(int dead, const DelayedTask& task) const {
    constexpr int max_polls = 20;
    const RemoteAccess::WaitFunction briefly = [&task](const std::function<bool()>& ready, const WaitFor&) {
        for (int polls = 0; !ready(); ++polls)
            if (polls == max_polls || task.wait_for_cancel(std::chrono::milliseconds(1)))
                return Status{Code::timeout, "the PE is not ready"};
        return Status{};
    };
    std::set<int> waiting;
    for (int pe = 0; pe < job_.npes(); ++pe)
        if (!job_.is_local(pe) && job_.layout().host_of(pe) != job_.layout().host_of(dead)) waiting.insert(pe);
    while (!waiting.empty() && !task.wait_for_cancel(std::chrono::milliseconds(0)))
        std::erase_if(waiting, [&](int pe) {
            return put_departure(*remote_, pe, {dead, 0}, briefly).code() != Code::timeout;
        });
    while (remote_->quiet(&briefly).code() == Code::timeout && !task.wait_for_cancel(std::chrono::milliseconds(0))) {
    }
}

void Departures::end_reports() {
    const std::lock_guard guard(reports_lock_);
    reports_ended_ = true;
    reports_.clear();
    remote_.reset();
}

}  // namespace npushmem
