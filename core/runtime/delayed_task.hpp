// Work that a thread of its own does after a while, unless it is cancelled before.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace npushmem {

class DelayedTask {
public:
    using Work = std::function<void(const DelayedTask& task)>;

    // Null when there is no thread to be had.
    static std::unique_ptr<DelayedTask> start(std::chrono::milliseconds delay, Work work);
    DelayedTask(const DelayedTask&) = delete;
    DelayedTask& operator=(const DelayedTask&) = delete;
    // Cancels the task, and waits for work that has begun.
    ~DelayedTask();

    // For the work: waits so long, or until the task is cancelled.
    [[nodiscard]] bool wait_for_cancel(std::chrono::milliseconds limit) const;

private:
    DelayedTask() = default;

    mutable std::mutex lock_;
    mutable std::condition_variable changed_;
    bool cancelled_ = false;  // under lock_
    std::thread thread_;
};

}  // namespace npushmem
