// SPDX-License-Identifier: BSD-3-Clause
// Drives a wire, on behalf of callers and of the progress thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "transports/network/outgoing.hpp"
#include "transports/network/peer_lanes.hpp"
#include "transports/network/wire.hpp"
#include "transports/shared/progress_thread.hpp"

namespace npushmem::network {

// Polls the wire and sends backlogs. Owns the progress thread, and ensures that the thread wakes for what no caller
// polls: room for a backlog, and completions that a signal waits for.
//
// The transport's lock guards everything but count_call(). The caller holds it, except when it destroys the driver.
class ProgressDriver {
public:
    ProgressDriver(std::mutex& lock, const std::unique_ptr<Wire>& wire, WireListener& listener, PeerLanes& lanes,
                   const OutgoingOperations& operations)
        : lock_(lock), wire_(wire), listener_(listener), lanes_(lanes), operations_(operations) {}

    // Starts the thread once. It calls `on_tick` without the lock every `tick`.
    Status start_thread(std::function<void()> on_tick, std::chrono::milliseconds tick);
    // Joins the thread. The caller does not hold the lock.
    void stop_thread() { thread_.reset(); }

    // From now on calls `arrived` with `context` each time the wire may have changed registered memory.
    void report_arrivals(void (*arrived)(void* context), void* context) {
        arrived_ = arrived;
        arrived_context_ = context;
    }
    // Call this after the wire may have changed memory without drive().
    void report_arrival() const {
        if (arrived_ != nullptr) arrived_(arrived_context_);
    }

    // Counts a caller that drives or wants to, so that the thread leaves the work to waiting callers.
    void count_call() { driven_.fetch_add(1, std::memory_order_relaxed); }
    // Returns true when it made progress.
    bool drive();
    // Call this after a message was queued behind others. The thread will then send it.
    void arm_for_room();
    // Call this after posting an operation whose completion starts another.
    void arm_for_completions();

private:
    bool drive_once();
    // Returns what ProgressThread::Work::drive returns. Takes the lock.
    int drive_for_thread();
    [[nodiscard]] WakeEvents wake_events() const;

    std::mutex& lock_;
    const std::unique_ptr<Wire>& wire_;
    WireListener& listener_;
    PeerLanes& lanes_;
    const OutgoingOperations& operations_;
    void (*arrived_)(void* context) = nullptr;
    void* arrived_context_ = nullptr;
    std::atomic<std::uint64_t> driven_{0};    // calls by other threads; relaxed: a statistic
    std::unique_ptr<ProgressThread> thread_;  // last member: stops first
};

}  // namespace npushmem::network
