// SPDX-License-Identifier: BSD-3-Clause
#include "transports/hccs/engines.hpp"

#include <algorithm>
#include <utility>

namespace npushmem::hccs {

Engines::Engines(std::size_t engines, std::size_t depth, Work work)
    : depth_(depth), work_(std::move(work)), engines_(engines) {}

Engines::Queue* Engines::find(std::uint64_t queue) {
    const auto found = queues_.find(queue);
    return found == queues_.end() ? nullptr : &found->second;
}

void Engines::open_queue(std::uint64_t queue) {
    const Lock lock(lock_);
    Queue& opened = queues_[queue];
    opened.last.assign(engines_.size(), 0);
    opened.next = (queues_.size() - 1) % engines_.size();
}

Code Engines::close_queue(std::uint64_t queue) {
    Lock lock(lock_);
    if (queues_.erase(queue) == 0) return Code::argument;
    idle_.wait(lock, [&] {
        return std::none_of(engines_.begin(), engines_.end(), [&](const Engine& engine) {
            return engine.busy && engine.transfers.front().queue == queue;
        });
    });
    return Code::ok;
}

Code Engines::post(std::uint64_t queue, const PostedOperation& operation, std::uint64_t* token) {
    const Lock lock(lock_);
    Queue* const from = find(queue);
    if (from == nullptr) return Code::argument;
    const std::size_t index = from->next;
    Engine& engine = engines_[index];
    if (engine.transfers.size() >= depth_) return Code::again;
    from->next = (index + 1) % engines_.size();
    engine.transfers.push_back({operation, queue, from->fence, false, {}});
    from->last[index] = engine.posted();
    if (token != nullptr) *token = token_of(index, engine.posted());
    request_wake(Nanoseconds{0});
    return Code::ok;
}

Code Engines::fence(std::uint64_t queue) {
    const Lock lock(lock_);
    Queue* const from = find(queue);
    if (from == nullptr) return Code::argument;
    from->fence = std::make_shared<const Counts>(from->last);
    return Code::ok;
}

Code Engines::quiet(std::uint64_t queue) {
    const Lock lock(lock_);
    Queue* const from = find(queue);
    if (from == nullptr) return Code::argument;
    for (std::size_t i = 0; i < engines_.size(); ++i)
        if (engines_[i].completed < from->last[i]) return Code::again;
    from->fence = nullptr;
    if (from->failed.empty()) return Code::ok;
    const Code first = from->failed.begin()->second;
    from->failed.clear();
    return first;
}

Code Engines::test(std::uint64_t queue, std::uint64_t token) {
    const Lock lock(lock_);
    Queue* const from = find(queue);
    if (from == nullptr) return Code::argument;
    if (token == 0) return Code::ok;
    const Engine& engine = engines_[token % engines_.size()];
    const std::uint64_t number = token / engines_.size();
    if (number > engine.posted()) return Code::argument;
    if (number > engine.completed) return Code::again;
    const auto failed = from->failed.extract(token);
    return failed.empty() ? Code::ok : failed.mapped();
}

// Starts with the last engine, so that later transfers execute earlier where they may. This exposes programs that rely
// on an order that nothing guarantees.
bool Engines::run() {
    bool any = false;
    for (bool more = true; more; any = any || more) {
        more = false;
        for (std::size_t i = engines_.size(); i-- > 0;) more = step(i) || more;
    }
    return any;
}

bool Engines::may_begin(const Transfer& transfer) const {
    if (transfer.after == nullptr) return true;
    for (std::size_t i = 0; i < engines_.size(); ++i)
        if (engines_[i].completed < (*transfer.after)[i]) return false;
    return true;
}

Nanoseconds Engines::due(Engine& engine) {
    if (engine.busy || engine.transfers.empty()) return never;
    Transfer& first = engine.transfers.front();
    if (find(first.queue) == nullptr) return Nanoseconds{0};  // step() drops it
    if (!may_begin(first)) return never;
    if (!std::exchange(first.begun, true)) first.start = work_.begin(first.operation, work_.now());
    return first.start.due;
}

bool Engines::step(std::size_t index) {
    Lock lock(lock_);
    Engine& engine = engines_[index];
    const Nanoseconds when = due(engine);
    if (when == never) return false;
    if (when > Nanoseconds{0} && when > work_.now()) {
        request_wake(when);
        return false;
    }
    engine.busy = true;
    const Transfer transfer = engine.transfers.front();
    Code code = transfer.start.code;
    if (code == Code::ok && find(transfer.queue) != nullptr) {
        lock.unlock();
        code = work_.carry_out(transfer.operation, transfer.queue);
        lock.lock();
    }
    finish(lock, index, code);
    return true;
}

void Engines::finish(Lock& /*held*/, std::size_t index, Code code) {
    Engine& engine = engines_[index];
    Queue* const from = find(engine.transfers.front().queue);
    engine.transfers.pop_front();
    ++engine.completed;
    engine.busy = false;
    if (code != Code::ok && from != nullptr) from->failed.emplace(token_of(index, engine.completed), code);
    idle_.notify_all();
}

void Engines::request_wake(Nanoseconds when) {
    if (when >= wake_at_) return;
    wake_at_ = when;
    work_.wake_at(when);
}

void Engines::woken() {
    const Lock lock(lock_);
    wake_at_ = never;
}

}  // namespace npushmem::hccs
