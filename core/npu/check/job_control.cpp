#include "core/npu/check/job_control.hpp"

#include <algorithm>
#include <utility>

namespace npushmem::npu::check {

using detail::CoreContext;

namespace {

// In each of them all cores poll `max_idle_polls` times: when so many brought nothing, none will.
constexpr int max_looks_in_a_row = 1024;
// In watched memory the cores poll once in each: no loop that gives up by itself is as long.
constexpr int min_looks_in_a_row = 64;
constexpr int max_polls_in_a_row = 16384;

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

void JobControl::count_looks(const CoreContext& chosen) {
    turned_ = true;
    if (polls(chosen)) ++polls_in_a_row_;
    const bool progress = watched_ ? waited(chosen) || domain_->version.changes() != looked_at_ : !polls(chosen);
    if (!progress) return;
    looked_at_ = domain_->version.changes();
    looks_in_a_row_ = polls_in_a_row_ = 0;
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
    count_looks(*running_);
    return *running_;
}

bool JobControl::look_again() {
    const bool enough = watched_ ? looks_in_a_row_ >= min_looks_in_a_row && polls_in_a_row_ >= max_polls_in_a_row
                                 : looks_in_a_row_ == max_looks_in_a_row;
    if (enough || !turned_) return false;
    turned_ = false;
    ++looks_in_a_row_;
    ++looks_;
    return true;
}

void JobControl::unblock() {
    if (!domain_->progress() && !look_again()) ends_.deadlocked();
}

bool JobControl::on_deadline() {
    if (!ends_.on_deadline) return false;
    ends_.on_deadline();
    return true;
}

}  // namespace npushmem::npu::check
