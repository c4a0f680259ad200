// SPDX-License-Identifier: BSD-3-Clause
// What the hooks of a device learn of its launches, and launches with a scheduler of their own beside others.
#include "core/npu/launch_observer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/npu/runner.hpp"
#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

using fakes::ArrayPe;
using fakes::SymmetricArray;
using testing::ElementsAre;

class Notes final : public detail::LaunchObserver {
public:
    std::uint64_t launches_changed(std::size_t unfinished) override {
        const std::lock_guard lock(mutex_);
        launches_.push_back(unfinished);
        return launches_.size();
    }
    void hosts_waiting(int threads) override { waiting.store(threads); }

    [[nodiscard]] std::vector<std::size_t> launches() const {
        const std::lock_guard lock(mutex_);
        return launches_;
    }

    std::atomic<int> waiting{0};

private:
    mutable std::mutex mutex_;
    std::vector<std::size_t> launches_;
};

struct LaunchObserverTest : testing::Test {
    // The hooks of a core see its launch; no core has any.
    std::function<void(detail::RunningLaunch&)> on_begin = [](detail::RunningLaunch&) {};
    std::shared_ptr<Notes> notes = std::make_shared<Notes>();
    SymmetricArray array{1, 4096};
    ArrayPe pe{array,
               0,
               {.blocks = 1,
                .vector_cores = 1,
                .hooks = detail::ObservingHooks{[this](Core& core) -> std::unique_ptr<CoreHooks> {
                                                    on_begin(*core.context()->run);
                                                    return nullptr;
                                                },
                                                notes}}};
    std::uint64_t* word = array.at<std::uint64_t>(0);

    [[nodiscard]] Status launch_waiting() {
        return launch(pe.stream(), 1, [this](Core& core) { core.signal_wait_until(word, Compare::not_equal, 0); });
    }
    // Release: pairs with the kernel's wait.
    void open() const { std::atomic_ref(*word).store(1, std::memory_order_release); }
};

TEST_F(LaunchObserverTest, CountsQueuedAndRunningLaunches) {
    std::vector<std::uint64_t> queued_at;
    on_begin = [&](detail::RunningLaunch& run) { queued_at.push_back(run.queued_at()); };
    ASSERT_TRUE(launch_waiting().ok());
    ASSERT_TRUE(launch(pe.stream(), 1, [](Core&) {}).ok());
    EXPECT_THAT(notes->launches(), ElementsAre(1, 2));
    open();
    ASSERT_TRUE(pe.stream().synchronize().ok());
    EXPECT_THAT(notes->launches(), ElementsAre(1, 2, 1, 0));
    EXPECT_THAT(queued_at, ElementsAre(1, 2));
}

TEST_F(LaunchObserverTest, CountsLaunchesThatAreSkipped) {
    ASSERT_TRUE(launch_waiting().ok());
    ASSERT_TRUE(launch(pe.stream(), 1, [](Core&) { throw KernelError(Code::mismatch, "first"); }).ok());
    ASSERT_TRUE(launch(pe.stream(), 1, [](Core&) {}).ok());
    ASSERT_TRUE(launch(pe.stream(), 1, [](Core&) {}).ok());
    open();
    EXPECT_EQ(pe.stream().synchronize().code(), Code::mismatch);
    EXPECT_EQ(notes->launches().back(), 0U);
}

TEST_F(LaunchObserverTest, KnowsHostsThatWait) {
    ASSERT_TRUE(launch_waiting().ok());
    std::thread host([&] { EXPECT_TRUE(pe.stream().synchronize().ok()); });
    while (notes->waiting.load() != 1) std::this_thread::yield();
    open();
    host.join();
    EXPECT_EQ(notes->waiting.load(), 0);
}

// Chooses the first core. Counts the launches that it sees.
class CountingScheduler final : public detail::Scheduler {
public:
    detail::CoreContext* choose(const std::vector<detail::CoreContext*>& runnable) override {
        for (const detail::CoreContext* core : runnable) seen.insert(core->run);
        return runnable.front();
    }
    detail::CoreContext* unblock() override { return nullptr; }
    [[nodiscard]] std::uint64_t version(const detail::CoreContext& /*core*/) const override { return 0; }

    std::set<const detail::RunningLaunch*> seen;
};

// The thread of a launch without a scheduler takes the other one while its own waits.
TEST_F(LaunchObserverTest, ALaunchWithASchedulerRunsAlone) {
    CountingScheduler scheduler;
    std::atomic<bool> taken{false};
    on_begin = [&](detail::RunningLaunch& run) {
        run.schedule_by(&scheduler);
        taken.store(true);
    };
    LaunchConfig own_hooks(1);
    own_hooks.hooks = [](Core&) { return std::unique_ptr<CoreHooks>(); };
    ASSERT_TRUE(launch(pe.stream(), own_hooks, [this](Core& core) {
                    core.signal_wait_until(word, Compare::not_equal, 0);
                }).ok());
    Stream other(*pe.device);
    ASSERT_TRUE(launch(other, 1, [](Core& core) { core.yield(); }).ok());
    while (!taken.load()) std::this_thread::yield();
    open();
    EXPECT_TRUE(pe.stream().synchronize().ok());
    EXPECT_TRUE(other.synchronize().ok());
    EXPECT_EQ(scheduler.seen.size(), 1U);
}

}  // namespace
}  // namespace npushmem::npu
