// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/wait_policies.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <thread>

namespace npushmem::npu {
namespace {

constexpr int polls_before_waiting = 256;
constexpr std::uint64_t rounds_of_spinning = 64;
constexpr std::uint64_t rounds_per_progress = 8;
constexpr std::uint64_t rounds_before_sleep = 4096;
constexpr std::chrono::microseconds sleep_between_polls{50};

}  // namespace

Code WaiterPolicy::until(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) {
    return waiter_.until(ready, WaitFor{.what = "a core of the device", .needs = {}, .timeout = timeout});
}

// If each PE has its own CPU: long enough for a word to travel between PEs, plus a margin.
int WaiterPolicy::polls() const { return waiter_.budget().spin_for.count() > 0 ? polls_before_waiting : 0; }

void WaiterPolicy::pause(std::uint64_t round) {
    // The word that a kernel polls may arrive only after the transport makes progress on this thread.
    if (progress_ != nullptr && *progress_ && round % rounds_per_progress == 0) (*progress_)();
    const bool may_spin = waiter_.budget().spin_for.count() > 0;
    if (may_spin && round < rounds_of_spinning) return cpu_pause();
    if (round < rounds_before_sleep) return os_.yield();
    os_.sleep(sleep_between_polls);
}

Status WaiterPolicy::peer_status(const PeGroup& pes) const {
    if (liveness_ == nullptr) return {};
    const auto dead = liveness_->find_dead(range_of(pes));
    if (!dead) return {};
    return {Code::peer_dead, fmt::format("PE {} has died", *dead)};
}

void WaiterPolicy::observe(const void* id, const LongWait& wait) {
    if (observer_ == nullptr) return;
    // Without the folder: a record has little room.
    const std::string call =
        wait.where.line() == 0
            ? std::string("a kernel")
            : fmt::format("a kernel at {}:{}", std::filesystem::path(wait.where.file_name()).filename().string(),
                          wait.where.line());
    const WaitFor what{
        .what = wait.what, .needs = range_of(PeGroup::one(wait.pe)), .call = call.c_str(), .object = wait.word};
    observer_->observe(id, what, wait.began, os_.now());
}

void WaiterPolicy::end_observation(const void* id) {
    if (observer_ != nullptr) observer_->end(id);
}

}  // namespace npushmem::npu

namespace npushmem::npu::detail {
namespace {

WaitBudget budget_for(int pes) {
    const unsigned cores = std::thread::hardware_concurrency();
    return choose_wait_budget({.cores = cores == 0 ? 1.0 : cores, .pes = pes});
}

}  // namespace

StandaloneWaitPolicy::StandaloneWaitPolicy(int pes)
    : waiter_(budget_for(pes), os_, counters_), policy_(waiter_, os_, nullptr, [pes] {
          return PeRange{0, 1, pes};
      }) {}

}  // namespace npushmem::npu::detail
