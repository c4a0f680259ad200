#include "core/npu/standalone_wait_policy.hpp"

#include <thread>

namespace npushmem::npu::detail {
namespace {

WaitBudget budget_for(int pes) {
    const unsigned cores = std::thread::hardware_concurrency();
    return choose_wait_budget({.cores = cores == 0 ? 1.0 : cores, .pes = pes});
}

}  // namespace

StandaloneWaitPolicy::StandaloneWaitPolicy(int pes)
    : waiter_(budget_for(pes), os_, counters_), policy_(waiter_, os_, nullptr, pes) {}

}  // namespace npushmem::npu::detail
