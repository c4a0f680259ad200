// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/explore/few_deviations.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace npushmem::npu::check::explore {

std::string text_of(const std::vector<Deviation>& deviations) {
    std::string text;
    for (const Deviation& deviation : deviations)
        text += (text.empty() ? "" : ",") + std::to_string(deviation.step) + "=" + std::to_string(deviation.thread);
    return text;
}

std::optional<std::vector<Deviation>> parse_deviations(std::string_view text) {
    std::vector<Deviation> all;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
        Deviation one{};
        if (!all.empty() && *at++ != ',') return std::nullopt;
        const auto step = std::from_chars(at, end, one.step);
        if (step.ec != std::errc{} || step.ptr == end || *step.ptr != '=') return std::nullopt;
        const auto thread = std::from_chars(step.ptr + 1, end, one.thread);
        if (thread.ec != std::errc{} || one.thread < 0) return std::nullopt;
        if (!all.empty() && one.step <= all.back().step) return std::nullopt;
        all.push_back(one);
        at = thread.ptr;
    }
    return all;
}

ThreadId DecidedRun::choose(const std::vector<ThreadId>& enabled, ThreadId preferred,
                            const std::function<std::vector<Waiting>()>& waiting) {
    const ThreadId usual = default_order(enabled, preferred).front();
    ThreadId chosen = usual;
    if (decided_) chosen = decisions_.choose(enabled, preferred);
    if (decided_ && decisions_.redundant()) {
        decided_ = false;
        decisions_.end_run(waiting());
    }
    if (chosen != usual) deviations_.push_back({steps_, chosen});
    ++steps_;
    return chosen;
}

void DecidedRun::end() {
    if (std::exchange(decided_, false)) decisions_.end_run({});
}

ThreadId Replay::choose(const std::vector<ThreadId>& enabled, ThreadId last) {
    const std::uint64_t step = step_++;
    if (next_ < deviations_.size() && deviations_[next_].step == step) {
        const ThreadId thread = deviations_[next_++].thread;
        if (std::ranges::find(enabled, thread) != enabled.end()) return thread;
    }
    return default_order(enabled, last).front();
}

bool FewDeviations::next_run() {
    if (diverged_) return false;
    runs_.resize(places_.size());
    runs_.push_back(std::exchange(enabled_, {}));
    if (!std::exchange(begun_, true)) return true;
    std::uint64_t step = places_.empty() ? 0 : places_.back().step + 1;
    for (;;) {
        const std::vector<std::size_t>& enabled = runs_[places_.size()];
        while (step < enabled.size() && enabled[step] < 2) ++step;
        if (places_.size() < max_ && step < enabled.size()) {
            places_.push_back({step, 1, enabled[step]});
            return true;
        }
        if (places_.empty()) return false;
        if (++places_.back().rank < places_.back().ranks) return true;
        step = places_.back().step + 1;
        places_.pop_back();
    }
}

ThreadId FewDeviations::choose(const std::vector<ThreadId>& enabled, ThreadId last) {
    const std::uint64_t step = enabled_.size();
    enabled_.push_back(enabled.size());
    if (!places_.empty() && step <= places_.back().step) {
        // The run without the last place began in the same way.
        const std::vector<std::size_t>& before = runs_[places_.size() - 1];
        if (step >= before.size() || before[step] != enabled.size()) diverged_ = true;
    }
    const auto place = std::ranges::find(places_, step, &Place::step);
    const std::size_t rank = place == places_.end() ? 0 : std::min(place->rank, enabled.size() - 1);
    return default_order(enabled, last)[rank];
}

}  // namespace npushmem::npu::check::explore
