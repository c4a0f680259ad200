#include "core/runtime/delayed_task.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace npushmem {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(DelayedTask, WorksWhenTheDelayIsOver) {
    std::promise<void> worked;
    const auto task = DelayedTask::start(milliseconds(1), [&](const DelayedTask&) { worked.set_value(); });
    ASSERT_NE(task, nullptr);
    worked.get_future().wait();
}

TEST(DelayedTask, DoesNothingWhenItIsCancelledBefore) {
    std::atomic<bool> worked = false;
    DelayedTask::start(hours(1), [&](const DelayedTask&) { worked = true; }).reset();
    EXPECT_FALSE(worked);
}

TEST(DelayedTask, WorkThatHasBegunSeesThatItIsCancelled) {
    std::promise<void> begun;
    bool seen = false;
    auto task = DelayedTask::start(milliseconds(0), [&](const DelayedTask& own) {
        begun.set_value();
        seen = own.wait_for_cancel(hours(1));
    });
    ASSERT_NE(task, nullptr);
    begun.get_future().wait();
    task.reset();
    EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace npushmem
