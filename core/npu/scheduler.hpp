// Who goes next, where that is not simply the next in the ring: for modes that replay, vary or explore the order.
#pragma once

#include <cstdint>
#include <vector>

#include "core/npu/core_context.hpp"

namespace npushmem::npu::detail {

// Called by the thread of one runner.
class Scheduler {
public:
    Scheduler() = default;
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;
    virtual ~Scheduler() = default;

    // One of `runnable`, which is not empty and in ring order behind the core that ran last.
    virtual CoreContext& choose(const std::vector<CoreContext*>& runnable) = 0;
    // No core can go on. Makes something happen that may change that, or fails the launches.
    virtual void unblock() = 0;
    // The deadline of a launch has passed. True: the scheduler has failed the launches. False: the runner fails this
    // one.
    virtual bool on_deadline() { return false; }
    // Changes with the memory: a core that polls need not look again before.
    [[nodiscard]] virtual std::uint64_t version() const = 0;
};

}  // namespace npushmem::npu::detail
