#include "core/npu/check/job_control.hpp"

#include <algorithm>

namespace npushmem::npu::check {

using detail::CoreContext;

void JobControl::attach(Domain& domain, std::function<void()> deadlocked) {
    domain_ = &domain;
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

namespace {

// Yields again and again, and nothing changes: others come first, even those that were set aside.
bool in_vain(const CoreContext& core) {
    return core.status == detail::CoreStatus::polling && core.polls_in_vain >= detail::most_polls_in_vain;
}

}  // namespace

CoreContext& JobControl::choose(const std::vector<CoreContext*>& able) {
    std::size_t chosen = 0;
    if (kind_ == Schedule::Kind::random) chosen = random_() % able.size();
    if (kind_ == Schedule::Kind::explore) {
        auto found = std::ranges::find_if(able, [](auto* core) { return !core->set_aside && !in_vain(*core); });
        if (found == able.end()) found = std::ranges::find(able, true, &CoreContext::set_aside);
        if (found != able.end()) chosen = static_cast<std::size_t>(found - able.begin());
    }
    if (std::ranges::all_of(able, [](auto* core) { return in_vain(*core); })) static_cast<void>(domain_->progress());
    running_ = able[chosen];
    running_->set_aside = false;
    return *running_;
}

void JobControl::unblock() {
    if (!domain_->progress()) deadlocked_();
}

}  // namespace npushmem::npu::check
