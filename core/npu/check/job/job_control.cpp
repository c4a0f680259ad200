// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/job/job_control.hpp"

#include <utility>

namespace npushmem::npu::check {

using detail::CoreContext;

namespace {

// In each round all cores poll detail::max_idle_polls times. After so many rounds without progress the cores are
// deadlocked.
constexpr int max_idle_rounds = 1024;
// In watched memory the cores poll once in each round. No loop with a bound of its own is as long.
constexpr int min_idle_rounds = 64;
constexpr int min_idle_polls = 1 << 20;

bool polls(const CoreContext& core) { return core.status == detail::CoreStatus::polling && core.polls != 0; }

bool waited(const CoreContext& core) {
    return core.status != detail::CoreStatus::polling && core.status != detail::CoreStatus::runnable;
}

}  // namespace

void JobControl::attach(Domain& domain, bool watched, Ends ends) {
    domain_ = &domain;
    watched_ = watched;
    ends_ = std::move(ends);
}

bool JobControl::run_command() {
    if (kind_ == Schedule::Kind::random) return draw(2);
    return kind_ == Schedule::Kind::eager;
}

bool JobControl::deliver_signal() { return run_command(); }

bool JobControl::switch_core() { return kind_ == Schedule::Kind::random && draw(4); }

void JobControl::count_idle_polls(const CoreContext& chosen) {
    ran_since_round_ = true;
    if (polls(chosen)) ++idle_polls_;
    const bool progress = watched_ ? waited(chosen) || domain_->version.changes() != last_change_ : !polls(chosen);
    if (!progress) return;
    last_change_ = domain_->version.changes();
    end_idle_rounds();
}

CoreContext* JobControl::choose(const std::vector<CoreContext*>& able) {
    CoreContext* chosen = able[kind_ == Schedule::Kind::random ? random_() % able.size() : 0];
    count_idle_polls(*chosen);
    return chosen;
}

bool JobControl::begin_poll_round() {
    const bool enough =
        watched_ ? idle_rounds_ >= min_idle_rounds && idle_polls_ >= min_idle_polls : idle_rounds_ == max_idle_rounds;
    if (enough || !ran_since_round_) return false;
    count_poll_round();
    return true;
}

void JobControl::count_poll_round() {
    ran_since_round_ = false;
    ++idle_rounds_;
    ++poll_rounds_;
}

CoreContext* JobControl::unblock() {
    if (!domain_->progress() && !begin_poll_round()) ends_.deadlocked();
    return nullptr;
}

bool JobControl::on_deadline() {
    if (!ends_.on_deadline) return false;
    ends_.on_deadline();
    return true;
}

}  // namespace npushmem::npu::check
