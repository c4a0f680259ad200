// SPDX-License-Identifier: BSD-3-Clause
#include "transports/fault/held_queue.hpp"

#include <algorithm>

namespace npushmem::fault {

std::uint64_t HeldQueue::hold(HeldOperation operation) {
    operation.token = ++last_token_;
    operation.epoch = epoch_;
    held_.push_back(operation);
    return operation.token;
}

std::vector<std::size_t> HeldQueue::candidates() const {
    std::vector<std::size_t> out;
    std::map<int, std::uint64_t> oldest_update;  // PE → epoch of the oldest update still held
    for (std::size_t i = 0; i < held_.size(); ++i) {
        const HeldOperation& operation = held_[i];
        const auto oldest = oldest_update.find(operation.posted.pe());
        const bool blocked = oldest != oldest_update.end() && oldest->second < operation.epoch;
        if (operation.posted.updates()) oldest_update.try_emplace(operation.posted.pe(), operation.epoch);
        if (operation.waiting == 0 && !blocked) out.push_back(i);
        if (!reorder_) break;  // only the first operation may be passed on
    }
    return out;
}

bool HeldQueue::step(Random& random) {
    for (auto& operation : held_)
        if (operation.waiting > 0) --operation.waiting;
    bool any = false;
    for (auto ready = candidates(); !ready.empty(); ready = candidates()) {
        const std::size_t chosen = ready[random() % ready.size()];
        if (issue(chosen) == Code::again) break;
        any = true;
    }
    return any;
}

// Fences the inner transport only where two operations need it, so that it cannot hide a missing fence.
Code HeldQueue::fence_inner_before(const HeldOperation& operation) {
    const auto earlier = updated_since_fence_.find(operation.posted.pe());
    if (earlier == updated_since_fence_.end() || earlier->second >= operation.epoch) return Code::ok;
    const Code code = inner_->fence(number_);
    if (code == Code::ok) updated_since_fence_.clear();
    return code;
}

Code HeldQueue::issue(std::size_t index) {
    const HeldOperation operation = held_[index];
    std::uint64_t inner_token = 0;
    Code code = fence_inner_before(operation);
    if (code == Code::ok) code = operation.posted.issue(*inner_, number_, &inner_token);
    if (code == Code::again) return code;
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    remember(operation, code, inner_token);
    return code;
}

void HeldQueue::remember(const HeldOperation& operation, Code code, std::uint64_t inner_token) {
    if (code != Code::ok) {
        failed_.emplace(operation.token, code);
        return;
    }
    if (inner_token != 0) in_flight_.emplace(operation.token, inner_token);
    if (!operation.posted.updates()) return;
    const auto [entry, inserted] = updated_since_fence_.try_emplace(operation.posted.pe(), operation.epoch);
    if (!inserted) entry->second = std::min(entry->second, operation.epoch);
}

Code HeldQueue::quiet() {
    if (!held_.empty()) return Code::again;
    const Code code = inner_->quiet(number_);
    if (code == Code::again) return code;
    in_flight_.clear();
    if (failed_.empty() || code != Code::ok) return code;
    const Code first = failed_.begin()->second;
    failed_.clear();
    return first;
}

Code HeldQueue::test(std::uint64_t token) {
    if (token > last_token_) return Code::argument;
    if (const auto failed = failed_.extract(token); !failed.empty()) return failed.mapped();
    if (std::any_of(held_.begin(), held_.end(), [&](const auto& held) { return held.token == token; }))
        return Code::again;
    const auto flying = in_flight_.find(token);
    if (flying == in_flight_.end()) return Code::ok;
    const Code code = inner_->test(number_, flying->second);
    if (code != Code::again) in_flight_.erase(flying);
    return code;
}

}  // namespace npushmem::fault
