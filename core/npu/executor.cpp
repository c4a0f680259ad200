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

    Executor& executor_;
    bool adopts_;
    Runner runner_;
    std::vector<Active> active_;
};

namespace {

// After this many consecutive launches that hosts ran themselves, the executor stops waking workers for each launch.
// The workers check the queues once per tick instead, and sleep when nothing was queued for several ticks.
constexpr int host_claims_before_ticking = 8;
constexpr std::chrono::milliseconds tick{1};
constexpr int empty_ticks_before_sleep = 10;

}  // namespace

Executor::Executor(const DeviceConfig& config, const Fabric& fabric, WaitPolicy& wait_policy)
    : config_(config), fabric_(fabric), wait_policy_(wait_policy) {}

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
    if (!std::exchange(stream->listed, true)) active_.push_back(stream);
    stream->entries.push_back(std::move(entry));
    ++stream->queued;
    ++enqueued_;
    process_entries(discarded);
    wake_worker();
    return {};
}

void Executor::process_entries(Discarded& discarded) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (const StreamRef& stream : active_) changed = process_stream(*stream, discarded) || changed;
    }
    std::erase_if(active_, [](const StreamRef& stream) {
        if (stream->busy || !stream->entries.empty() || !stream->failure.ok()) return false;
        stream->listed = false;
        return true;
    });
    const auto claimable =
        std::count_if(active_.begin(), active_.end(), [](const StreamRef& stream) { return stream->claimable(); });
    claimable_.store(static_cast<int>(claimable), std::memory_order_relaxed);
}

bool Executor::process_stream(StreamState& stream, Discarded& discarded) {
    bool changed = false;
    while (!stream.busy && !stream.entries.empty()) {
        StreamState::Entry& head = stream.entries.front();
        const bool skipped = !stream.failure.ok() || stopping();
        if (!skipped && (head.job != nullptr || !head.satisfied())) break;
        if (head.job != nullptr) discarded.push_back(std::move(head.job));
        stream.entries.pop_front();
        ++stream.completed;
        changed = true;
    }
    if (changed) ended_.notify_all();
    return changed;
}

void Executor::wake_worker() {
    const int claimable = claimable_.load(std::memory_order_relaxed);
    if (claimable == 0 || (host_claims_ >= host_claims_before_ticking && ticking_workers_ > 0)) return;
    if (sleeping_workers_ == 0 && static_cast<int>(workers_.size()) < config_.workers) {
        workers_.emplace_back([this] { run_worker(); });
    }
    work_.notify_one();
}

void Executor::run_worker() {
    LaunchThread thread(*this, true);
    for (;;) {
        std::optional<Claim> next;
        {
            Lock lock(mutex_);
            if (!wait_for_work(lock)) return;
            next = claim_locked(nullptr);
            if (next) host_claims_ = 0;
        }
        if (next) thread.run(std::move(*next));
    }
}

// Returns false when the device is being destroyed.
bool Executor::wait_for_work(Lock& lock) {
    const auto wanted = [this] { return has_work(); };
    ++sleeping_workers_;
    for (int empty = 0; !wanted() && empty < empty_ticks_before_sleep && host_claims_ >= host_claims_before_ticking;) {
        const std::uint64_t before = enqueued_;
        ++ticking_workers_;
        work_.wait_for(lock, tick);
        --ticking_workers_;
        empty = enqueued_ == before ? empty + 1 : 0;
    }
    work_.wait(lock, wanted);
    --sleeping_workers_;
    return !stopping();
}

std::optional<Executor::Claim> Executor::claim(const StreamState* only) {
    const Lock lock(mutex_);
    return claim_locked(only);
}

std::optional<Executor::Claim> Executor::claim_locked(const StreamState* only) {
    for (const StreamRef& stream : active_) {
        if (only != nullptr && stream.get() != only) continue;
        if (!stream->claimable()) continue;
        Claim claim{stream, std::move(stream->entries.front().job)};
        stream->entries.pop_front();
        stream->busy = true;
        claimable_.fetch_sub(1, std::memory_order_relaxed);
        return claim;
    }
    return std::nullopt;
}

void Executor::complete(Claim claim, const Status& outcome) {
    Discarded discarded;
    discarded.push_back(std::move(claim.job));
    // The kernel's objects are destroyed before anyone can see that the launch has ended.
    discarded.clear();
    const Lock lock(mutex_);
    StreamState& stream = *claim.stream;
    stream.busy = false;
    ++stream.completed;
    if (stream.failure.ok()) stream.failure = outcome;
    process_entries(discarded);
    ended_.notify_all();
    wake_worker();
}

void Executor::run_launches_until(const StreamRef& stream, std::uint64_t sequence, Lock& lock) {
    while (stream->completed < sequence) {
        auto claim = claim_locked(stream.get());
        if (!claim) {
            ended_.wait(lock);
            continue;
        }
        ++host_claims_;
        lock.unlock();
        LaunchThread(*this, false).run(std::move(*claim));
        lock.lock();
    }
}

Status Executor::take_failure(StreamState& stream) { return std::exchange(stream.failure, Status{}); }

Status Executor::synchronize(const StreamRef& stream) {
    Lock lock(mutex_);
    if (Status status = rejection(*stream); !status.ok()) return status;
    run_launches_until(stream, stream->queued, lock);
    return take_failure(*stream);
}

Status Executor::synchronize(const StreamRef& stream, std::chrono::nanoseconds timeout) {
    Lock lock(mutex_);
    if (Status status = rejection(*stream); !status.ok()) return status;
    work_.notify_one();
    const std::uint64_t target = stream->queued;
    const auto ended = [&] { return stream->completed >= target; };
    if (ended_.wait_for(lock, timeout, ended)) return take_failure(*stream);
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
    return take_failure(*stream);
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
    const auto unfinished = [](const StreamRef& stream) { return stream->completed < stream->queued; };
    for (;;) {
        const auto found = std::find_if(active_.begin(), active_.end(), unfinished);
        if (found == active_.end()) break;
        const StreamRef stream = *found;
        run_launches_until(stream, stream->queued, lock);
    }
    Status first;
    for (const StreamRef& stream : active_) {
        Status failure = take_failure(*stream);
        if (first.ok()) first = std::move(failure);
    }
    return first;
}

void Executor::stop() {
    std::vector<std::thread> workers;
    {
        Discarded discarded;
        const Lock lock(mutex_);
        stopping_.store(true, std::memory_order_relaxed);
        process_entries(discarded);
        workers.swap(workers_);
        work_.notify_all();
    }
    for (std::thread& worker : workers) worker.join();
    // Streams hold the executor: without this the two would keep each other alive.
    std::vector<StreamRef> released;
    const Lock lock(mutex_);
    released.swap(active_);
}

Result<std::unique_ptr<CoreSet>> Executor::acquire_cores() {
    {
        const Lock lock(mutex_);
        if (!idle_cores_.empty()) {
            auto cores = std::move(idle_cores_.back());
            idle_cores_.pop_back();
            return cores;
        }
    }
    return CoreSet::create(config_);
}

void Executor::release_cores(std::unique_ptr<CoreSet> cores) {
    const Lock lock(mutex_);
    idle_cores_.push_back(std::move(cores));
}

LaunchThread::LaunchThread(Executor& executor, bool adopts)
    : executor_(executor), adopts_(adopts), runner_(executor.wait_policy(), *this) {}

void LaunchThread::run(Executor::Claim claim) {
    start(std::move(claim));
    runner_.run([this](RunningLaunch& ended) { finish(ended); });
}

bool LaunchThread::has_work() const { return adopts_ ? executor_.has_work() : executor_.stopping(); }

bool LaunchThread::adopt() {
    if (!adopts_) return false;
    auto claim = executor_.claim(nullptr);
    if (!claim) return false;
    start(std::move(*claim));
    return true;
}

void LaunchThread::start(Executor::Claim claim) {
    auto cores = executor_.acquire_cores();
    Status status = cores.status();
    if (cores.ok()) status = cores.value()->prepare(claim.job->config.block_dim * executor_.config().vector_cores);
    if (!status.ok()) return executor_.complete(std::move(claim), status);
    Active active{std::move(claim), std::move(cores).value(), nullptr};
    active.run =
        std::make_unique<RunningLaunch>(*active.claim.job, executor_.config(), executor_.fabric(), *active.cores);
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
    executor_.release_cores(std::move(ended.cores));
    executor_.complete(std::move(ended.claim), outcome);
}

}  // namespace npushmem::npu::detail
