// A device waits as the rest of its process does.
#pragma once

#include "core/base/wait.hpp"
#include "npushmem/npu/wait_policy.hpp"

namespace npushmem::npu {

// Over a Waiter; `waiter`, `os` and `liveness` must outlive it. `liveness` may be null; `n_pes` is asked about when a
// kernel does not say whose store it waits for. The Waiter itself should know no liveness: which PE matters differs per
// core.
class WaiterPolicy final : public WaitPolicy {
public:
    WaiterPolicy(const Waiter& waiter, WaitOs& os, Liveness* liveness, int n_pes)
        : waiter_(waiter), os_(os), liveness_(liveness), n_pes_(n_pes) {}

    Code until(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) override;
    void pause(std::uint64_t round) override;
    [[nodiscard]] Status verdict(int pe) const override;

private:
    const Waiter& waiter_;
    WaitOs& os_;
    Liveness* liveness_;
    int n_pes_;
};

}  // namespace npushmem::npu
