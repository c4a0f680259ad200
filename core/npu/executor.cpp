// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/npu/runner.hpp"

namespace npushmem::npu::detail {

// Runs launches on one thread, from claim to completion. Lives on the stack of that thread.
class LaunchThread final : public WorkSource {
public:
    // `adopts`: also takes further launches, of any stream, while its own wait. A host that helps does not adopt: it
    // must be free again when its own stream has ended.
    LaunchThread(Executor& executor, bool adopts);

    // Returns when this launch, and all launches adopted meanwhile, have ended.
    void run(Executor::Claim claim);

    [[nodiscard]] bool has_work() const override;
    bool adopt() override;
    [[nodiscard]] bool stopping() const override { return executor_.stopping(); }

private:
    struct Active {
        Executor::Claim claim;
        std::unique_ptr<CoreSet> cores;
        std::unique_ptr<RunningLaunch> run;
    };

    void start(Executor::Claim claim);
    void finish(const RunningLaunch& run);
    // Launches with a scheduler of their own, which the thread has taken while others ran, run alone.
    bool start_waiting();

    Executor& executor_;
    const bool may_adopt_;
    bool adopts_;  // the present launch does not block the thread
    Runner runner_;
    std::vector<Active> active_;
    std::vector<Active> waiting_;
};

namespace {

// After this many consecutive launches that hosts ran themselves, the executor stops waking workers for each launch.
// The workers check the queues once per tick instead, and sleep when nothing was queued for several ticks.
constexpr int host_claims_before_ticking = 8;
constexpr std::chrono::milliseconds tick{1};
constexpr int empty_ticks_before_sleep = 10;

}  // namespace

void LaunchQueues::add(const StreamRef& stream, StreamState::Entry entry) {
    if (!std::exchange(stream->listed, true)) active_.push_back(stream);
    stream->entries.push_back(std::move(entry));
    ++stream->queued;
}

bool LaunchQueues::process(bool stopping, Discarded& discarded) {
    bool any_ended = false;
    bool changed = true;
    while (changed) {
        changed = false;
        for (const StreamRef& stream : active_) changed = process_stream(*stream, stopping, discarded) || changed;
        any_ended = any_ended || changed;
    }
    std::erase_if(active_, [](const StreamRef& stream) {
        if (stream->busy || !stream->entries.empty() || !stream->failure.ok()) return false;
        stream->listed = false;
        return true;
    });
    const auto count = [this](bool (StreamState::*has)() const) {
        return static_cast<int>(std::count_if(active_.begin(), active_.end(),
                                              [has](const StreamRef& stream) { return ((*stream).*has)(); }));
    };
    claimable_.store(count(&StreamState::claimable), std::memory_order_relaxed);
    adoptable_.store(count(&StreamState::adoptable), std::memory_order_relaxed);
    return any_ended;
}

bool LaunchQueues::process_stream(StreamState& stream, bool stopping, Discarded& discarded) {
    bool changed = false;
    while (!stream.busy && !stream.entries.empty()) {
        StreamState::Entry& head = stream.entries.front();
        const bool skipped = !stream.failure.ok() || stopping;
        if (!skipped && (head.job != nullptr || !head.satisfied())) break;
        if (head.job != nullptr) discarded.push_back(std::move(head.job));
        stream.entries.pop_front();
        ++stream.completed;
        changed = true;
    }
    return changed;
}

std::optional<LaunchQueues::Claim> LaunchQueues::claim(const StreamState* only) {
    for (const StreamRef& stream : active_) {
        if (only != nullptr && stream.get() != only) continue;
        if (stream->claimable()) return take(stream);
    }
    return std::nullopt;
}

std::optional<LaunchQueues::Claim> LaunchQueues::claim_adoptable() {
    for (const StreamRef& stream : active_)
        if (stream->adoptable()) return take(stream);
    return std::nullopt;
}

LaunchQueues::Claim LaunchQueues::take(const StreamRef& stream) {
    Claim claim{stream, std::move(stream->entries.front().job)};
    stream->entries.pop_front();
    stream->busy = true;
    claimable_.fetch_sub(1, std::memory_order_relaxed);
    if (!claim.blocks_thread()) adoptable_.fetch_sub(1, std::memory_order_relaxed);
    return claim;
}

StreamRef LaunchQueues::find_unfinished() const {
    const auto unfinished = [](const StreamRef& stream) { return stream->completed < stream->queued; };
    const auto found = std::find_if(active_.begin(), active_.end(), unfinished);
    return found == active_.end() ? nullptr : *found;
}

Status LaunchQueues::take_failures() {
    Status first;
    for (const StreamRef& stream : active_) {
        Status failure = stream->take_failure();
        if (first.ok()) first = std::move(failure);
    }
    return first;
}

void IdleWorkers::wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& wanted) {
    ++waiting_;
    for (int empty = 0; !wanted() && empty < empty_ticks_before_sleep && host_claims_ >= host_claims_before_ticking;) {
        const std::uint64_t before = enqueued_;
        ++ticking_;
        work_.wait_for(lock, tick);
        --ticking_;
        empty = enqueued_ == before ? empty + 1 : 0;
    }
    work_.wait(lock, wanted);
    --waiting_;
}

bool IdleWorkers::are_ticking() const { return host_claims_ >= host_claims_before_ticking && ticking_ > 0; }

Result<std::unique_ptr<CoreSet>> CoreSetPool::acquire() {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            auto cores = std::move(idle_.back());
            idle_.pop_back();
            return cores;
        }
    }
    return CoreSet::create(config_);
}

void CoreSetPool::release(std::unique_ptr<CoreSet> cores) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(cores));
}

Executor::Executor(const DeviceConfig& config, const Fabric& fabric, WaitPolicy& wait_policy)
    : config_(config), fabric_(fabric), wait_policy_(wait_policy), cores_(config_) {
    if (const auto* hooks = config_.hooks.target<ObservingHooks>(); hooks != nullptr) observer_ = hooks->observer;
}

Executor::~Executor() = default;

Status Executor::rejection(const StreamState& stream) const {
    if (stopping()) return {Code::state, "the device of this stream was destroyed"};
    if (stream.closed) return {Code::state, "the stream was closed"};
    return {};
}

Status Executor::enqueue(const StreamRef& stream, StreamState::Entry entry) {
    Discarded discarded;
    const Lock lock(mutex_);
    if (Status status = rejection(*stream); !status.ok()) return status;
    if (entry.job != nullptr) {
        ++unfinished_;
        if (observer_) entry.job->queued_at = observer_->launches_changed(unfinished_);
    }
    queues_.add(stream, std::move(entry));
    idle_workers_.count_enqueued();
    advance(discarded);
    return {};
}

void Executor::count_ended(std::size_t launches) {
    unfinished_ -= launches;
    if (observer_ && launches > 0) static_cast<void>(observer_->launches_changed(unfinished_));
}

void Executor::advance(Discarded& discarded) {
    const std::size_t before = discarded.size();
    if (queues_.process(stopping(), discarded)) ended_.notify_all();
    count_ended(discarded.size() - before);
    supply_worker();
}

void Executor::supply_worker() {
    if (queues_.claimable() == 0 || idle_workers_.are_ticking()) return;
    const int sharing = static_cast<int>(workers_.size()) - occupied_workers_;
    const bool needed = queues_.claimable() > queues_.adoptable() || sharing < config_.workers;
    if (needed && !idle_workers_.any_waiting() && starting_workers_ == 0) {
        workers_.emplace_back([this] { run_worker(); });
        ++starting_workers_;
    }
    idle_workers_.wake_one();
}

void Executor::run_worker() {
    LaunchThread thread(*this, true);
    Lock lock(mutex_);
    --starting_workers_;
    for (;;) {
        idle_workers_.wait(lock, [this] { return has_work(); });
        if (stopping()) return;
        auto next = queues_.claim(nullptr);
        if (!next) continue;
        idle_workers_.count_worker_claim();
        next->occupies_worker = next->blocks_thread();
        if (next->occupies_worker) ++occupied_workers_;
        // While this worker was free no other one was started for the remaining launches.
        supply_worker();
        lock.unlock();
        thread.run(std::move(*next));
        lock.lock();
    }
}

std::optional<Executor::Claim> Executor::claim(const StreamState* only) {
    const Lock lock(mutex_);
    return queues_.claim(only);
}

std::optional<Executor::Claim> Executor::claim_adoptable() {
    const Lock lock(mutex_);
    return queues_.claim_adoptable();
}

void Executor::complete(Claim claim, const Status& outcome) {
    Discarded discarded;
    discarded.push_back(std::move(claim.job));
    // The kernel's objects are destroyed before anyone can see that the launch has ended.
    discarded.clear();
    const Lock lock(mutex_);
    if (claim.occupies_worker) --occupied_workers_;
    StreamState& stream = *claim.stream;
    stream.busy = false;
    ++stream.completed;
    if (stream.failure.ok()) stream.failure = outcome;
    ended_.notify_all();
    count_ended(1);
    advance(discarded);
}

void Executor::run_launches_until(const StreamRef& stream, std::uint64_t sequence, Lock& lock) {
    if (stream->completed >= sequence) return;
    if (observer_) observer_->hosts_waiting(++hosts_waiting_);
    while (stream->completed < sequence) {
        auto claim = queues_.claim(stream.get());
        if (!claim) {
            ended_.wait(lock);
            continue;
        }
        idle_workers_.count_host_claim();
        lock.unlock();
        LaunchThread(*this, false).run(std::move(*claim));
        lock.lock();
    }
    if (observer_) observer_->hosts_waiting(--hosts_waiting_);
}

Status Executor::synchronize(const StreamRef& stream) {
    Lock lock(mutex_);
    if (Status status = rejection(*stream); !status.ok()) return status;
    run_launches_until(stream, stream->queued, lock);
    return stream->take_failure();
}

Status Executor::synchronize(const StreamRef& stream, std::chrono::nanoseconds timeout) {
    Lock lock(mutex_);
    if (Status status = rejection(*stream); !status.ok()) return status;
    idle_workers_.wake_one();
    const std::uint64_t target = stream->queued;
    const auto ended = [&] { return stream->completed >= target; };
    if (ended_.wait_for(lock, timeout, ended)) return stream->take_failure();
    const std::chrono::duration<double> limit = timeout;
    return {Code::timeout, fmt::format("the stream did not finish within {} s: {} of {} launches and waits have ended; "
                                       "the others continue: synchronize again, or give launches a timeout",
                                       limit.count(), stream->completed, target)};
}

Status Executor::close(const StreamRef& stream) {
    Lock lock(mutex_);
    if (stream->closed || stopping()) return {};
    stream->closed = true;
    run_launches_until(stream, stream->queued, lock);
    return stream->take_failure();
}

Status Executor::await(const StreamRef& stream, std::uint64_t sequence) {
    Lock lock(mutex_);
    run_launches_until(stream, sequence, lock);
    return stream->failure;
}

bool Executor::ended(const StreamState& stream, std::uint64_t sequence) const {
    const Lock lock(mutex_);
    return stream.completed >= sequence;
}

Code Executor::query(const StreamState& stream) const {
    const Lock lock(mutex_);
    if (Status status = rejection(stream); !status.ok()) return status.code();
    if (stream.completed < stream.queued) return Code::again;
    return stream.failure.code();
}

std::uint64_t Executor::last_queued(const StreamState& stream) const {
    const Lock lock(mutex_);
    return stream.queued;
}

Status Executor::synchronize_all() {
    Lock lock(mutex_);
    while (const StreamRef stream = queues_.find_unfinished()) run_launches_until(stream, stream->queued, lock);
    return queues_.take_failures();
}

void Executor::stop() {
    std::vector<std::thread> workers;
    {
        Discarded discarded;
        const Lock lock(mutex_);
        stopping_.store(true, std::memory_order_relaxed);
        if (queues_.process(true, discarded)) ended_.notify_all();
        count_ended(discarded.size());
        workers.swap(workers_);
        idle_workers_.wake_all();
    }
    for (std::thread& worker : workers) worker.join();
    // Streams hold the executor: without this the two would keep each other alive.
    std::vector<StreamRef> released;
    const Lock lock(mutex_);
    released = queues_.release();
}

LaunchThread::LaunchThread(Executor& executor, bool adopts)
    : executor_(executor), may_adopt_(adopts), adopts_(adopts), runner_(executor.wait_policy(), *this) {}

void LaunchThread::run(Executor::Claim claim) {
    adopts_ = may_adopt_ && !claim.blocks_thread();
    start(std::move(claim));
    do runner_.run([this](RunningLaunch& ended) { finish(ended); });
    while (start_waiting());
}

bool LaunchThread::start_waiting() {
    if (waiting_.empty()) return false;
    active_.push_back(std::move(waiting_.back()));
    waiting_.pop_back();
    runner_.add(*active_.back().run, *active_.back().cores);
    return true;
}

bool LaunchThread::has_work() const {
    return adopts_ && waiting_.empty() && !runner_.scheduled() ? executor_.has_adoptable() : executor_.stopping();
}

bool LaunchThread::adopt() {
    if (!adopts_ || !waiting_.empty() || runner_.scheduled()) return false;
    auto claim = executor_.claim_adoptable();
    if (!claim) return false;
    start(std::move(*claim));
    return true;
}

void LaunchThread::start(Executor::Claim claim) {
    auto cores = executor_.cores().acquire();
    Status status = cores.status();
    if (cores.ok()) status = cores.value()->prepare(claim.job->config.block_dim * executor_.config().vector_cores);
    if (!status.ok()) return executor_.complete(std::move(claim), status);
    Active active{std::move(claim), std::move(cores).value(), nullptr};
    active.run =
        std::make_unique<RunningLaunch>(*active.claim.job, executor_.config(), executor_.fabric(), *active.cores);
    if (!active_.empty() && active.run->scheduler() != nullptr) return waiting_.push_back(std::move(active));
    active_.push_back(std::move(active));
    runner_.add(*active_.back().run, *active_.back().cores);
}

void LaunchThread::finish(const RunningLaunch& run) {
    const auto found =
        std::find_if(active_.begin(), active_.end(), [&](const Active& a) { return a.run.get() == &run; });
    Active ended = std::move(*found);
    active_.erase(found);
    const Status outcome = run.failure();
    ended.run.reset();
    executor_.cores().release(std::move(ended.cores));
    executor_.complete(std::move(ended.claim), outcome);
}

}  // namespace npushmem::npu::detail
