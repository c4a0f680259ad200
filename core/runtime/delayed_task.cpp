#include "core/runtime/delayed_task.hpp"

#include <utility>

#include "core/base/service_thread.hpp"

namespace npushmem {

std::unique_ptr<DelayedTask> DelayedTask::start(std::chrono::milliseconds delay, Work work) {
    std::unique_ptr<DelayedTask> task(new DelayedTask);
    auto thread = start_service_thread("npushmem-delay", [delay, own = task.get(), work = std::move(work)] {
        if (!own->wait_for_cancel(delay)) work(*own);
    });
    if (!thread.ok()) return nullptr;
    task->thread_ = std::move(thread).value();
    return task;
}

DelayedTask::~DelayedTask() {
    {
        const std::lock_guard guard(lock_);
        cancelled_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

bool DelayedTask::wait_for_cancel(std::chrono::milliseconds limit) const {
    std::unique_lock guard(lock_);
    return changed_.wait_for(guard, limit, [this] { return cancelled_; });
}

}  // namespace npushmem
