// Waiting for a device that no runtime made.
#pragma once

#include "core/npu/waiter_policy.hpp"

namespace npushmem::npu::detail {

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
