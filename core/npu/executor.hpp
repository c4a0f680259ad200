#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/npu/core_set.hpp"
#include "core/npu/running_launch.hpp"
#include "npushmem/npu/device_config.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/wait_policy.hpp"

namespace npushmem::npu::detail {

// The state behind a stream's handle. The executor's mutex guards it, except for its constants.
class Executor;

class StreamState {
public:
    // Either a launch, or a wait until `awaited` has completed its entry number `sequence`.
    struct Entry {
        std::unique_ptr<QueuedLaunch> job;
        std::shared_ptr<StreamState> awaited;
        std::uint64_t sequence = 0;

        [[nodiscard]] bool satisfied() const { return awaited->completed >= sequence; }
    };

    explicit StreamState(std::shared_ptr<Executor> owner) : executor(std::move(owner)) {}

    // Whether a thread can take a launch from this stream.
    [[nodiscard]] bool claimable() const { return !busy && !entries.empty() && entries.front().job != nullptr; }

    const std::shared_ptr<Executor> executor;
    std::deque<Entry> entries;
    std::uint64_t queued = 0;     // entries queued so far: the sequence number of the last one
    std::uint64_t completed = 0;  // entries that have ended; they end in order
    bool busy = false;            // a launch of this stream is running
    bool listed = false;          // in the executor's list of active streams
    bool closed = false;
    Status failure;  // the first failure since the last synchronize
};

// The launch queues of a device and the threads that process them.
//
// Threads: workers, which start when a launch finds no free worker; and hosts that synchronize, which run a launch of
// their own stream themselves if no worker has taken it. This saves two hand-overs between threads. One mutex guards
// all state and is held for bookkeeping only.
class Executor : public std::enable_shared_from_this<Executor> {
public:
    using StreamRef = std::shared_ptr<StreamState>;

    // A launch that a thread has taken. Its stream is busy until complete().
    struct Claim {
        StreamRef stream;
        std::unique_ptr<QueuedLaunch> job;
    };

    Executor(const DeviceConfig& config, const Fabric& fabric, WaitPolicy& wait_policy);
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;
    ~Executor();

    [[nodiscard]] const DeviceConfig& config() const { return config_; }
    [[nodiscard]] const Fabric& fabric() const { return fabric_; }
    [[nodiscard]] WaitPolicy& wait_policy() const { return wait_policy_; }

    // Called by streams and events.
    Status enqueue(const StreamRef& stream, StreamState::Entry entry);
    Status synchronize(const StreamRef& stream);
    Status synchronize(const StreamRef& stream, std::chrono::nanoseconds timeout);
    Status close(const StreamRef& stream);
    Status await(const StreamRef& stream, std::uint64_t sequence);
    [[nodiscard]] bool ended(const StreamState& stream, std::uint64_t sequence) const;
    [[nodiscard]] Code query(const StreamState& stream) const;
    [[nodiscard]] std::uint64_t last_queued(const StreamState& stream) const;
    Status synchronize_all();
    // Drops queued launches, ends running ones, and joins the workers. Idempotent.
    void stop();

    // Called by the threads that run launches. `only`: take a launch of this stream; null: of any stream.
    std::optional<Claim> claim(const StreamState* only);
    void complete(Claim claim, const Status& outcome);
    Result<std::unique_ptr<CoreSet>> acquire_cores();
    void release_cores(std::unique_ptr<CoreSet> cores);
    // Relaxed: a hint between polls; claim() checks again under the mutex.
    [[nodiscard]] bool has_work() const { return claimable_.load(std::memory_order_relaxed) != 0 || stopping(); }
    [[nodiscard]] bool stopping() const { return stopping_.load(std::memory_order_relaxed); }

private:
    using Lock = std::unique_lock<std::mutex>;
    // Kernels whose destructors must run after the mutex is released.
    using Discarded = std::vector<std::unique_ptr<QueuedLaunch>>;

    [[nodiscard]] std::optional<Claim> claim_locked(const StreamState* only);
    // Completes the entries that need no thread, and counts the streams that have a launch to claim.
    void process_entries(Discarded& discarded);
    bool process_stream(StreamState& stream, Discarded& discarded);
    void wake_worker();
    void run_worker();
    [[nodiscard]] bool wait_for_work(Lock& lock);
    void run_launches_until(const StreamRef& stream, std::uint64_t sequence, Lock& lock);
    static Status take_failure(StreamState& stream);
    Status rejection(const StreamState& stream) const;

    const DeviceConfig config_;
    const Fabric& fabric_;
    WaitPolicy& wait_policy_;

    mutable std::mutex mutex_;
    std::condition_variable work_;   // wakes workers
    std::condition_variable ended_;  // wakes hosts: an entry has ended
    std::vector<StreamRef> active_;  // streams that have entries or are busy
    std::vector<std::unique_ptr<CoreSet>> idle_cores_;
    std::vector<std::thread> workers_;
    int sleeping_workers_ = 0;
    int ticking_workers_ = 0;
    // Consecutive launches that hosts ran themselves; waking a worker for each of these is a waste.
    int host_claims_ = 0;
    std::uint64_t enqueued_ = 0;
    std::atomic<int> claimable_{0};
    std::atomic<bool> stopping_{false};
};

}  // namespace npushmem::npu::detail
