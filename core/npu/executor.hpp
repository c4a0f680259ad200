// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/npu/core_set.hpp"
#include "core/npu/launch_observer.hpp"
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
    // Whether a thread that has launches already can take one.
    [[nodiscard]] bool adoptable() const { return claimable() && !entries.front().job->config.blocks_thread; }
    Status take_failure() { return std::exchange(failure, Status{}); }

    const std::shared_ptr<Executor> executor;
    std::deque<Entry> entries;
    std::uint64_t queued = 0;     // entries queued so far: the sequence number of the last one
    std::uint64_t completed = 0;  // entries that have ended; they end in order
    bool busy = false;            // a launch of this stream is running
    bool listed = false;          // in the executor's list of active streams
    bool closed = false;
    Status failure;  // the first failure since the last synchronize
};

using StreamRef = std::shared_ptr<StreamState>;

// The streams of a device that have entries or are busy. The executor's mutex guards it.
class LaunchQueues {
public:
    // A launch that a thread has taken. Its stream is busy until the launch has ended.
    struct Claim {
        StreamRef stream;
        std::unique_ptr<QueuedLaunch> job;
        bool occupies_worker = false;  // the launch blocks the worker that has taken it

        [[nodiscard]] bool blocks_thread() const { return job->config.blocks_thread; }
    };
    // Kernels whose destructors must run after the mutex is released.
    using Discarded = std::vector<std::unique_ptr<QueuedLaunch>>;

    void add(const StreamRef& stream, StreamState::Entry entry);
    // Takes a launch of this stream; null: of any stream.
    [[nodiscard]] std::optional<Claim> claim(const StreamState* only);
    // Takes a launch of any stream that does not block its thread.
    [[nodiscard]] std::optional<Claim> claim_adoptable();
    // Completes the entries that need no thread, and counts the streams that have a launch to claim. `stopping`: all
    // entries. Returns true when an entry has ended.
    bool process(bool stopping, Discarded& discarded);
    // The number of streams that have a launch to claim, and of those whose launch does not block its thread. Relaxed:
    // without the mutex they are hints between polls; claim() checks again under the mutex.
    [[nodiscard]] int claimable() const { return claimable_.load(std::memory_order_relaxed); }
    [[nodiscard]] int adoptable() const { return adoptable_.load(std::memory_order_relaxed); }
    // Null: every stream has ended all its entries.
    [[nodiscard]] StreamRef find_unfinished() const;
    // Takes the failures of all streams and returns the first.
    Status take_failures();
    // Removes all streams.
    [[nodiscard]] std::vector<StreamRef> release() { return std::exchange(active_, {}); }

private:
    static bool process_stream(StreamState& stream, bool stopping, Discarded& discarded);
    Claim take(const StreamRef& stream);

    std::vector<StreamRef> active_;
    std::atomic<int> claimable_{0};
    std::atomic<int> adoptable_{0};
};

// How workers without a launch wait. They sleep until they are woken. While hosts run the launches of their streams
// themselves, waking a worker for each launch is a waste: then the workers check the queues once per tick. The
// executor's mutex guards it.
class IdleWorkers {
public:
    // Returns when `wanted` is true.
    void wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& wanted);
    void wake_one() { work_.notify_one(); }
    void wake_all() { work_.notify_all(); }
    // Whether a worker will find the next launch without being woken.
    [[nodiscard]] bool are_ticking() const;
    [[nodiscard]] bool any_waiting() const { return waiting_ != 0; }
    void count_enqueued() { ++enqueued_; }
    void count_host_claim() { ++host_claims_; }
    void count_worker_claim() { host_claims_ = 0; }

private:
    std::condition_variable work_;
    int waiting_ = 0;
    int ticking_ = 0;
    int host_claims_ = 0;  // consecutive launches that hosts ran themselves
    std::uint64_t enqueued_ = 0;
};

// Core sets that no launch uses. Any thread may call it.
class CoreSetPool {
public:
    explicit CoreSetPool(const DeviceConfig& config) : config_(config) {}

    Result<std::unique_ptr<CoreSet>> acquire();
    void release(std::unique_ptr<CoreSet> cores);

private:
    const DeviceConfig& config_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<CoreSet>> idle_;
};

// Runs the launches of a device's streams.
//
// Threads: workers, which start when a launch finds no free worker; and hosts that synchronize, which run a launch of
// their own stream themselves if no worker has taken it. This saves two hand-overs between threads. A worker whose
// launches wait adopts further ones. A launch that blocks its thread, such as a barrier of the host, is never adopted,
// because the worker's other launches could not continue, on which another PE may depend before it enters the barrier.
// Its worker does not count towards the configured number. One mutex guards the streams and the workers and is held for
// bookkeeping only.
//
// One class, because its functions are the calls of streams, events and launch threads under that mutex. The queues,
// the waits of idle workers and the core sets are separate.
class Executor : public std::enable_shared_from_this<Executor> {
public:
    using StreamRef = detail::StreamRef;
    using Claim = LaunchQueues::Claim;

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
    std::optional<Claim> claim_adoptable();
    void complete(Claim claim, const Status& outcome);
    [[nodiscard]] CoreSetPool& cores() { return cores_; }
    // A hint between polls: claim() checks again under the mutex.
    [[nodiscard]] bool has_work() const { return queues_.claimable() != 0 || stopping(); }
    [[nodiscard]] bool has_adoptable() const { return queues_.adoptable() != 0 || stopping(); }
    [[nodiscard]] bool stopping() const { return stopping_.load(std::memory_order_relaxed); }

private:
    using Lock = std::unique_lock<std::mutex>;
    using Discarded = LaunchQueues::Discarded;

    // The observer learns of launches that have ended.
    void count_ended(std::size_t launches);
    // Completes the entries that need no thread, and wakes or starts a worker for the others.
    void advance(Discarded& discarded);
    // Wakes or starts a worker if a launch has none.
    void supply_worker();
    void run_worker();
    void run_launches_until(const StreamRef& stream, std::uint64_t sequence, Lock& lock);
    Status rejection(const StreamState& stream) const;

    const DeviceConfig config_;
    const Fabric& fabric_;
    WaitPolicy& wait_policy_;

    mutable std::mutex mutex_;
    std::condition_variable ended_;  // wakes hosts: an entry has ended
    LaunchQueues queues_;
    IdleWorkers idle_workers_;
    std::vector<std::thread> workers_;
    int starting_workers_ = 0;                  // workers that have not looked for a launch yet
    int occupied_workers_ = 0;                  // workers whose launch blocks them
    std::shared_ptr<LaunchObserver> observer_;  // null: nobody observes
    std::size_t unfinished_ = 0;                // launches that are queued or run
    int hosts_waiting_ = 0;
    CoreSetPool cores_;
    std::atomic<bool> stopping_{false};
};

}  // namespace npushmem::npu::detail
