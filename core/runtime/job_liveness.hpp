// SPDX-License-Identifier: BSD-3-Clause
// Waiting and liveness of this PE: how it waits, and which PEs will never arrive.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "core/base/liveness.hpp"
#include "core/base/wait.hpp"
#include "core/map/host_layout.hpp"
#include "core/memory/control_block.hpp"
#include "core/runtime/start_exchange.hpp"
#include "core/runtime/wait_recorder.hpp"

namespace npushmem {

// Finds PEs that will never arrive: those whose process has died, those of this host that have finalized, and those of
// other hosts that have sent their departures.
class JobLiveness final : public Liveness {
public:
    // A PE's control block, null for a PE of another host.
    using ControlBlockLookup = std::function<ControlBlock*(int pe)>;

    JobLiveness(int npes, ProcessLiveness::ProcessLookup process_of);

    // Finalized PEs are found too from now on. `barriers` returns the number of barriers that this PE has left, and
    // `any_departed` whether there may be PEs that this one misses after so many. Call it before the first wait.
    void watch(int my_pe, ControlBlockLookup control, std::function<bool(std::uint64_t barriers)> any_departed,
               std::function<std::uint64_t()> barriers);
    // From now on the end of these PEs of this host is found too, whose processes are not visible here. Call it before
    // the first wait.
    void watch_unseen(std::vector<int> pes, std::function<bool(int pe)> has_ended);

    // Sets the function that receives each PE that is found dead, possibly several times: the part that is connected to
    // it frees what it holds for it. Called by the thread that finds it, without locks. Set it before the first wait,
    // and clear it after the last.
    void on_dead(std::function<void(int pe)> listener) { on_dead_ = std::move(listener); }

    // Records that a transport lost its connection to this PE, so that waits for the PE fail. Any thread.
    void mark_lost(int pe);

    // Returns what this PE knows about a PE of another host. Any thread.
    RemotePeState remote_state(int pe);

    // From now on the job continues without its dead: find_dead() returns a dead PE of `pes` itself, not the cause of
    // its death. Call it before the first wait.
    void survive_deaths() { survives_deaths_ = true; }
    // Then: sets the function that receives each PE that this PE has found dead by itself, possibly several times, and
    // again after it has returned false. As on_dead(); it does not wait. Set it after watch_unseen().
    void on_own_finding(std::function<bool(int pe)> listener);
    [[nodiscard]] bool survives_deaths() const { return survives_deaths_; }
    // Other PEs have found this PE dead. Any thread.
    void learn_dead(int pe);
    // The program knows that the PE is dead. Any thread.
    void acknowledge(int pe);
    [[nodiscard]] bool is_acknowledged(int pe) const;
    // Returns the PEs whose death ends a wait that any PE may satisfy: all but the acknowledged dead. Valid while this
    // lives.
    [[nodiscard]] PeRange awaited_pes() const;

    // Returns the first PE that died, not a PE that ended because of it, as far as the PEs of this host have recorded
    // it. The result may be a PE outside `pes`.
    std::optional<int> find_dead(const PeRange& pes) override;

private:
    [[nodiscard]] std::optional<int> lost_among(const PeRange& pes);
    [[nodiscard]] std::optional<int> ended_among(const PeRange& pes);
    [[nodiscard]] std::optional<int> swept_among(const PeRange& pes);
    // Adds the ends that a sweep finds. A process that has ended stays ended.
    void add_ended(ProcessLiveness::Depth depth);
    [[nodiscard]] std::optional<int> reported_among(const PeRange& pes);
    [[nodiscard]] std::optional<int> lost_or_dead_among(const PeRange& pes);
    [[nodiscard]] bool has_finalized(int pe) const;
    [[nodiscard]] bool has_sent_departure(int pe) const;
    [[nodiscard]] int cause_of(int dead) const;
    void read_reported_deaths();
    void report_own_findings(std::optional<int> dead);

    ProcessLiveness processes_;
    int visible_pes_ = 0;            // whose processes this one sees
    ControlBlock* sweep_ = nullptr;  // of the first of them: it counts those that have ended
    std::mutex sweep_lock_;
    std::vector<int> ended_;   // found in a sweep, in ascending order; under sweep_lock_
    std::vector<int> unseen_;  // in ascending order
    std::function<bool(int pe)> unseen_has_ended_;
    int my_pe_ = -1;
    ControlBlockLookup control_;
    std::function<bool(std::uint64_t barriers)> any_departed_;
    std::function<std::uint64_t()> barriers_;
    std::function<void(int pe)> on_dead_;
    std::function<bool(int pe)> on_own_finding_;
    std::mutex lost_lock_;
    std::set<int> lost_;           // by a transport; under lost_lock_
    std::set<int> reported_dead_;  // by other PEs; under lost_lock_
    bool survives_deaths_ = false;
    std::mutex unreported_lock_;
    // With on_own_finding_: the PEs whose ends can be found here and are not reported. Under unreported_lock_.
    std::vector<int> unreported_;
    std::mutex acknowledge_lock_;
    // The PEs that are not acknowledged, after each acknowledgement; the last one counts. Readers may still use the
    // earlier ones. Under acknowledge_lock_.
    std::deque<std::vector<int>> awaited_;
    // The last one; null: all PEs. Stored with release, loaded with acquire.
    std::atomic<const std::vector<int>*> current_awaited_{nullptr};
};

// Runs work on its own thread after a delay, unless it is cancelled before.
class DelayedTask {
public:
    using Work = std::function<void(const DelayedTask& task)>;

    // Returns null if no thread can be created.
    static std::unique_ptr<DelayedTask> start(std::chrono::milliseconds delay, Work work);
    DelayedTask(const DelayedTask&) = delete;
    DelayedTask& operator=(const DelayedTask&) = delete;
    // Cancels the task, and waits until work that has begun ends.
    ~DelayedTask();

    // Waits for `limit`, or until the task is cancelled (then true). The work calls it.
    [[nodiscard]] bool wait_for_cancel(std::chrono::milliseconds limit) const;

private:
    DelayedTask() = default;

    mutable std::mutex lock_;
    mutable std::condition_variable changed_;
    bool cancelled_ = false;  // under lock_
    std::thread thread_;
};

// Returns the PEs per core of the most crowded machine of the job. The number is the same on every PE, for choices that
// all PEs must make alike.
double max_pes_per_core(const PeRecords& records, int npes);

// The parts that every Waiter refers to, kept together because they must outlive it.
struct WaitServices {
    // `pes` and `layout` outlive this.
    WaitServices(const PeRecords& records, const PeTable& pes, const HostLayout& layout, int my_pe);
    WaitServices(const WaitServices&) = delete;
    WaitServices& operator=(const WaitServices&) = delete;

    HostOccupancy share;
    WaitBudget budget;
    SystemWaitOs os;
    WaitCounters counters;
    JobLiveness liveness;
    WaitRecorder recorder;
    // Used for waits for the transports' operations, whose conditions make progress: WaitFor::is_stepwise.
    Waiter transport_waiter;
    // Used for all other waits. It calls `progress`, which may be set until the first wait.
    WaitProgress progress;
    Waiter driving_waiter;
};

}  // namespace npushmem
