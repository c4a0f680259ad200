// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/job_control.hpp"

#include <algorithm>
#include <utility>

namespace npushmem::npu::check {

using detail::CoreContext;

namespace {

// In each round all cores poll detail::max_idle_polls times. After so many rounds without progress the cores are
// deadlocked.
constexpr int max_idle_rounds = 1024;
// In watched memory the cores poll once in each round. No loop with a bound of its own is as long.
constexpr int min_idle_rounds = 64;
constexpr int min_idle_polls = 16384;

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

bool JobControl::defer() {
    const std::uint64_t place = places_++;
    if (next_deferred_ == deferred_.size() || deferred_[next_deferred_] != place) return false;
    ++next_deferred_;
    return true;
}

bool JobControl::run_command() {
    switch (kind_) {
        case Schedule::Kind::eager: return true;
        case Schedule::Kind::lazy: return false;
        case Schedule::Kind::random: return draw(2);
        case Schedule::Kind::explore: return !defer();
    }
    return true;
}

bool JobControl::deliver_signal() { return run_command(); }

bool JobControl::switch_core() {
    if (kind_ == Schedule::Kind::random) return draw(4);
    if (kind_ != Schedule::Kind::explore || !defer()) return false;
    if (running_ != nullptr) running_->deferred = true;
    return true;
}

void JobControl::count_idle_polls(const CoreContext& chosen) {
    ran_since_round_ = true;
    if (polls(chosen)) ++idle_polls_;
    const bool progress = watched_ ? waited(chosen) || domain_->version.changes() != last_change_ : !polls(chosen);
    if (!progress) return;
    last_change_ = domain_->version.changes();
    idle_rounds_ = idle_polls_ = 0;
}

CoreContext& JobControl::choose(const std::vector<CoreContext*>& able) {
    std::size_t chosen = 0;
    if (kind_ == Schedule::Kind::random) chosen = random_() % able.size();
    if (std::exchange(long_turn_, false)) std::ranges::for_each(able, [](auto* core) { core->deferred = false; });
    if (kind_ == Schedule::Kind::explore) {
        const auto found = std::ranges::find(able, false, &CoreContext::deferred);
        if (found != able.end()) chosen = static_cast<std::size_t>(found - able.begin());
    }
    running_ = able[chosen];
    running_->deferred = false;
    count_idle_polls(*running_);
    return *running_;
}

bool JobControl::begin_poll_round() {
    const bool enough =
        watched_ ? idle_rounds_ >= min_idle_rounds && idle_polls_ >= min_idle_polls : idle_rounds_ == max_idle_rounds;
    if (enough || !ran_since_round_) return false;
    ran_since_round_ = false;
    ++idle_rounds_;
    ++poll_rounds_;
    return true;
}

void JobControl::unblock() {
    if (!domain_->progress() && !begin_poll_round()) ends_.deadlocked();
}

bool JobControl::on_deadline() {
    if (!ends_.on_deadline) return false;
    ends_.on_deadline();
    return true;
}

}  // namespace npushmem::npu::check
