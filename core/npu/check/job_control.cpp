#include "core/npu/check/job_control.hpp"

#include <algorithm>

namespace npushmem::npu::check {

using detail::CoreContext;

namespace {

// In each of them all cores poll `most_polls_in_vain` times: when so many brought nothing, none will.
constexpr int most_looks_in_a_row = 1024;

bool polls(const CoreContext& core) { return core.status == detail::CoreStatus::polling && core.polls != 0; }

}  // namespace

void JobControl::attach(Domain& domain, bool watched, std::function<void()> deadlocked) {
    domain_ = &domain;
    watched_ = watched;
    deadlocked_ = std::move(deadlocked);
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

bool JobControl::give_way() {
    if (kind_ == Schedule::Kind::random) return draw(4);
    if (kind_ != Schedule::Kind::explore || !defer()) return false;
    if (running_ != nullptr) running_->set_aside = true;
    return true;
}

bool JobControl::in_vain(const CoreContext& core) const {
    return core.status == detail::CoreStatus::polling && core.polls_in_vain >= detail::most_polls_in_vain &&
           core.polled_version == version();
}

CoreContext& JobControl::choose(const std::vector<CoreContext*>& able) {
    std::size_t chosen = 0;
    if (kind_ == Schedule::Kind::random) chosen = random_() % able.size();
    if (kind_ == Schedule::Kind::explore) {
        auto found = std::ranges::find_if(able, [this](auto* core) { return !core->set_aside && !in_vain(*core); });
        if (found == able.end()) found = std::ranges::find(able, true, &CoreContext::set_aside);
        if (found != able.end()) chosen = static_cast<std::size_t>(found - able.begin());
    }
    if (std::ranges::all_of(able, [this](auto* core) { return in_vain(*core); }))
        static_cast<void>(domain_->progress());
    running_ = able[chosen];
    running_->set_aside = false;
    turned_ = true;
    if (!polls(*running_)) looks_in_a_row_ = 0;
    return *running_;
}

bool JobControl::look_again() {
    if (watched_ || !turned_ || looks_in_a_row_ == most_looks_in_a_row) return false;
    turned_ = false;
    ++looks_in_a_row_;
    ++looks_;
    return true;
}

void JobControl::unblock() {
    if (!domain_->progress() && !look_again()) deadlocked_();
}

}  // namespace npushmem::npu::check
