#include "core/npu/launch_thread.hpp"

#include <algorithm>
#include <utility>

namespace npushmem::npu::detail {

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
