// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/progress_driver.hpp"

#include <new>
#include <thread>
#include <utility>

#include "core/base/out_of_memory.hpp"

namespace npushmem::network {

Status ProgressDriver::start_thread(std::function<void()> on_tick, std::chrono::milliseconds tick) {
    if (thread_) return {};
    auto started = ProgressThread::start({[this] { return drive_for_thread(); },
                                          [this] { return driven_.load(std::memory_order_relaxed); },
                                          std::move(on_tick), tick, wire_->alarm()});
    if (!started.ok()) return started.status();
    thread_ = std::move(started).value();
    return {};
}

bool ProgressDriver::drive() {
    const bool had_backlog = lanes_.has_backlog();
    const bool happened = drive_once();
    if (!had_backlog && lanes_.has_backlog()) arm_for_room();
    return happened;
}

// Where no memory is left, events of peers that wait for them would be lost.
bool ProgressDriver::drive_once() try {
    const bool happened = wire_->progress(listener_);
    if (lanes_.has_backlog()) lanes_.send_backlogs();
    // Last: ofi_rxm may receive while it sends.
    if (happened || wire_->traits().writes_silently) report_arrival();
    return happened;
} catch (const std::bad_alloc&) {
    end_without_memory("progress of a transport");
}

// Completions free room, but the thread may be waiting for arrivals only. Later completions wake it; this handles
// earlier ones, up to a limit.
void ProgressDriver::arm_for_room() {
    constexpr int max_rounds = 1024;
    if (!thread_ || wire_->prepare_to_wait(WakeEvents::arrivals_and_completions)) return;
    for (int i = 0; i < max_rounds && drive_once(); ++i) {
    }
}

int ProgressDriver::drive_for_thread() {
    // More events often follow at once: an answer, the next part of a stream. Polling is faster than being woken. Other
    // threads get the lock and the processor between two polls.
    constexpr std::chrono::microseconds max_idle{50};
    constexpr std::chrono::milliseconds max_duration{1};
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const std::uint64_t driven = driven_.load(std::memory_order_relaxed);
    auto last = begin;
    std::unique_lock guard(lock_);
    auto now = begin;
    for (; now - last < max_idle && now - begin < max_duration; now = Clock::now()) {
        if (driven_.load(std::memory_order_relaxed) - driven >= ProgressThread::busy_calls)
            return ProgressThread::wait_briefly;
        if (drive()) {
            last = now;
            continue;
        }
        guard.unlock();
        std::this_thread::yield();
        guard.lock();
    }
    // With a backlog the thread waits for room, which no descriptor reports.
    if (lanes_.has_backlog()) return ProgressThread::wait_briefly;
    if (wire_->prepare_to_wait(wake_events())) return wire_->descriptor();
    // A new arrival would otherwise wait for the pause that lets other threads take the lock.
    return drive() && now - begin < max_duration ? ProgressThread::continue_now : ProgressThread::wait_briefly;
}

// The program polls completions when it waits, but a signal follows its data without a call of the program.
WakeEvents ProgressDriver::wake_events() const {
    return operations_.has_deferred_signal() ? WakeEvents::arrivals_and_completions : WakeEvents::arrivals;
}

// The thread may be waiting for arrivals only. If arrivals never end, as with a foreign process that floods the PE,
// they wake the thread, which then also waits for completions.
void ProgressDriver::arm_for_completions() {
    constexpr int max_rounds = 1024;
    if (!thread_) return;
    for (int i = 0; i < max_rounds; ++i)
        if (wire_->prepare_to_wait(WakeEvents::arrivals_and_completions) || !drive()) return;
}

}  // namespace npushmem::network
