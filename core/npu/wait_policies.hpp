// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <utility>

#include "core/base/wait.hpp"
#include "npushmem/npu/wait_policy.hpp"

namespace npushmem::npu {

// Wait policy of a device in a job: it waits like the rest of the process, through a Waiter.
//
// `waiter`, `os` and `liveness` must outlive it. `liveness` may be null. If a kernel does not name the PE that it waits
// for, those that `any_pe` returns are checked. The Waiter itself should have no liveness, because the relevant PE
// differs per core; nor an observer, because a core's wait is longer than one of the Waiter's. `progress` is the
// Waiter's progress function, which pauses call too; null: none. `observer` receives the long waits of cores; null:
// nobody does.
class WaiterPolicy final : public WaitPolicy {
public:
    WaiterPolicy(const Waiter& waiter, WaitOs& os, Liveness* liveness, std::function<PeRange()> any_pe,
                 const std::function<void()>* progress = nullptr, WaitObserver* observer = nullptr)
        : waiter_(waiter),
          os_(os),
          liveness_(liveness),
          any_pe_(std::move(any_pe)),
          progress_(progress),
          observer_(observer) {}

    Code until(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) override;
    [[nodiscard]] int polls() const override;
    void pause(std::uint64_t round) override;
    [[nodiscard]] Status peer_status(const PeGroup& pes) const override;
    void observe(const void* id, const LongWait& wait) override;
    void end_observation(const void* id) override;

private:
    [[nodiscard]] PeRange range_of(const PeGroup& pes) const {
        return pes.count == 0 ? any_pe_() : PeRange{pes.first, pes.stride, pes.count, pes.list};
    }

    const Waiter& waiter_;
    WaitOs& os_;
    Liveness* liveness_;
    std::function<PeRange()> any_pe_;
    const std::function<void()>* progress_;
    WaitObserver* observer_;
};

}  // namespace npushmem::npu

namespace npushmem::npu::detail {

// Wait policy of a device that was created without a runtime.
class StandaloneWaitPolicy final : public WaitPolicy {
public:
    // `pes`: number of PEs on this machine.
    explicit StandaloneWaitPolicy(int pes);

    Code until(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) override {
        return policy_.until(ready, timeout);
    }
    [[nodiscard]] int polls() const override { return policy_.polls(); }
    void pause(std::uint64_t round) override { policy_.pause(round); }

private:
    SystemWaitOs os_;
    WaitCounters counters_;
    Waiter waiter_;
    WaiterPolicy policy_;
};

}  // namespace npushmem::npu::detail
