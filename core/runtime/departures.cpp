// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/departures.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include "npushmem/plugin/local_atomic.hpp"

namespace npushmem {

// Relaxed: JobLiveness checks again. After the last barrier all PEs finalize, and each keeps its memory until all have
// passed: a wait for a finalized PE still ends.
bool Departures::any(std::uint64_t barriers) const {
    if (passed_last_barrier_.load(std::memory_order_relaxed)) return false;
    return slices_.host_memory().has_departures(barriers) ||
           std::ranges::any_of(slices_.heap().control().departures,
                               [](const auto& slot) { return slot.load(std::memory_order_relaxed) != 0; });
}

void Departures::publish(std::uint64_t last_barrier, bool all_have_entered) {
    // Relaxed: this process reads the flag, see `any`; publish_finalized releases the number.
    passed_last_barrier_.store(all_have_entered, std::memory_order_relaxed);
    slices_.heap().control().last_barrier.store(last_barrier, std::memory_order_relaxed);
    slices_.publish_finalized();
}

namespace {

// A transport may hold this PE's last signals until it is driven. Returns after `limit`, or false when cancelled.
bool drive_for(std::chrono::milliseconds limit, JobTransports& transports, const DelayedTask& task) {
    constexpr std::chrono::milliseconds pause{1};
    for (auto passed = pause; passed <= limit; passed += pause) {
        if (task.wait_for_cancel(pause)) return false;
        (void)transports.remote().progress();  // a failure ends the bootstrap's barrier or concerns no PE that is here
    }
    return true;
}

}  // namespace

// The other PEs arrive within moments, unless they have not called finalize: then they wait for this PE at a barrier.
Status Departures::wait_for_others(JobTransports& transports, std::uint64_t last_barrier) {
    static constexpr std::chrono::milliseconds departure_delay{500};
    std::unique_ptr<DelayedTask> driver;
    if (slices_.fast_map().all_mapped == 0)
        driver = DelayedTask::start(std::chrono::milliseconds(0),
                                    [this, &transports, last_barrier](const DelayedTask& task) {
                                        if (!drive_for(departure_delay, transports, task)) return;
                                        send(transports, last_barrier, task);
                                        (void)drive_for(std::chrono::milliseconds::max(), transports, task);
                                    });
    return job_.bootstrap().barrier();
}

namespace {

npushmem_atomic operation_on_slot(int to, int departed, std::uint8_t operation, std::uint64_t operand) {
    npushmem_atomic op{};
    op.pe = to;
    op.operation = operation;
    op.width = 8;
    op.offset = offsetof(ControlBlock, departures) + departure_slot(departed) * sizeof(std::uint64_t);
    op.operand = operand;
    return op;
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
        (void)transports.remote().atomic(operation_on_slot(pe, own.pe, NPUSHMEM_ATOMIC_SET, own.packed()),
                                         RemoteAccess::Completion::deferred, &until_cancelled);
    }
}

// The PEs of its host see the process.
bool Departures::report_death(JobTransports& transports, int dead) {
    const std::lock_guard guard(reports_lock_);
    if (reports_ended_ || job_.layout().hosts() == 1 || reported_.contains(dead)) return true;
    if (!send_by_thread(transports)) return false;
    reported_.insert(dead);
    for (int pe = 0; pe < job_.npes(); ++pe)
        if (job_.layout().host_of(pe) != job_.layout().host_of(dead))
            reports_.push_back({Departure::of_dead(dead), pe});
    return true;
}

void Departures::report_end(JobTransports& transports, std::uint64_t last_barrier) {
    const std::lock_guard guard(reports_lock_);
    if (reports_ended_ || job_.layout().hosts() == 1 || !send_by_thread(transports)) return;
    const Departure own{job_.my_pe(), static_cast<std::uint32_t>(last_barrier)};
    for (int pe = 0; pe < job_.npes(); ++pe)
        if (!job_.is_local(pe)) reports_.push_back({own, pe});
}

bool Departures::send_by_thread(JobTransports& transports) {
    if (is_sending_) return true;
    if (!remote_) remote_ = std::make_unique<RemoteAccess>(transports.remote_peers());
    sender_ = DelayedTask::start(std::chrono::milliseconds(0), [this](const DelayedTask& task) { send_reports(task); });
    return is_sending_ = sender_ != nullptr;
}

// Waits for no PE long, because any of them may be dead too; asks those again that had no room or no connection.
void Departures::send_reports(const DelayedTask& task) {
    constexpr int max_polls = 20;
    const RemoteAccess::WaitFunction briefly = [&task](const std::function<bool()>& ready, const WaitFor&) {
        for (int polls = 0; !ready(); ++polls)
            if (polls == max_polls || task.wait_for_cancel(std::chrono::milliseconds(1)))
                return Status{Code::timeout, "the PE is not ready"};
        return Status{};
    };
    std::vector<Report> waiting;
    bool is_complete = false;
    while (!task.wait_for_cancel(std::chrono::milliseconds(is_complete ? 1 : 0))) {
        {
            const std::lock_guard guard(reports_lock_);
            waiting.insert(waiting.end(), reports_.begin(), reports_.end());
            reports_.clear();
            if (waiting.empty() && is_complete) {
                is_sending_ = false;
                return;
            }
        }
        std::erase_if(waiting, [&](const Report& report) { return place(report, briefly); });
        is_complete = remote_->quiet(&briefly).code() != Code::timeout;
    }
}

// Returns false to be called again. Replaces the departure of a PE that has finalized, but not a death, which its
// receiver removes (JobLiveness).
bool Departures::place(const Report& report, const RemoteAccess::WaitFunction& briefly) const {
    const std::uint64_t word = report.departure.packed();
    for (std::uint64_t expected = 0;;) {
        std::uint64_t before = 0;
        npushmem_atomic op = operation_on_slot(report.to, report.departure.pe, NPUSHMEM_ATOMIC_COMPARE_SWAP, word);
        op.compare = expected;
        op.result = &before;
        // Release. Partner: the acquire in JobLiveness.
        ControlBlock* const there = slices_.control_of(report.to);
        const Status done = there != nullptr
                                ? Status{apply_atomic(reinterpret_cast<std::byte*>(there) + op.offset, op), ""}
                                : remote_->atomic(op, RemoteAccess::Completion::local, &briefly);
        if (!done.ok()) return done.code() != Code::timeout;
        if (before == expected || before == word) return true;
        if (Departure::unpacked(before).is_dead) return false;
        expected = before;
    }
}

void Departures::end_reports() {
    {
        const std::lock_guard guard(reports_lock_);
        reports_ended_ = true;
    }
    sender_.reset();  // without the lock, which the thread takes
    remote_.reset();
}

}  // namespace npushmem
