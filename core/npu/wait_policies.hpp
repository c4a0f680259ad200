#pragma once

#include "core/base/wait.hpp"
#include "npushmem/npu/wait_policy.hpp"

namespace npushmem::npu {

// A device waits as the rest of its process does.
// Over a Waiter; `waiter`, `os` and `liveness` must outlive it. `liveness` may be null; `n_pes` is asked about when a
// kernel does not say whose store it waits for. The Waiter itself should know no liveness: which PE matters differs per
// core. `progress`, as the Waiter's own, for the pauses; null: there is none to make.
class WaiterPolicy final : public WaitPolicy {
public:
    WaiterPolicy(const Waiter& waiter, WaitOs& os, Liveness* liveness, int n_pes,
                 const std::function<void()>* progress = nullptr)
        : waiter_(waiter), os_(os), liveness_(liveness), n_pes_(n_pes), progress_(progress) {}

    Code until(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) override;
    [[nodiscard]] int polls() const override;
    void pause(std::uint64_t round) override;
    [[nodiscard]] Status peer_status(int pe) const override;

private:
    const Waiter& waiter_;
    WaitOs& os_;
    Liveness* liveness_;
    int n_pes_;
    const std::function<void()>* progress_;
};

}  // namespace npushmem::npu

namespace npushmem::npu::detail {

// Waiting for a device that no runtime made.
class StandaloneWaitPolicy final : public WaitPolicy {
public:
    // `pes`: PEs that share this machine.
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
