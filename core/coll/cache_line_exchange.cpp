// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/cache_line_exchange.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/parking.hpp"

namespace npushmem::coll {

void CacheLineExchange::send(int member, const std::byte* payload, std::uint64_t count) {
    std::byte* const there = cell(member, index_, call_);
    if (count > 0) std::memcpy(there + payload_offset, payload, count);
    // Release. Partner: the acquire load in has_arrived(). The check for sleepers follows later, when it need not wait
    // for the store any more.
    FutexCounter(there).counter().store(call_, std::memory_order_release);
}

bool CacheLineExchange::has_arrived(int member) const {
    // Acquire. Partner: the release store in send().
    return FutexCounter(cell(index_, member, call_)).counter().load(std::memory_order_acquire) == call_;
}

// The fence orders the stores of the call before the checks for sleepers, as FutexCounter::store does for one store;
// see parking.hpp.
void CacheLineExchange::wake_sleepers_of_all() {
    sleepers_woken_ = true;
    full_fence();
    std::uint32_t woken = 0;
    for (int i = 1; i < members_.count; ++i) {
        FutexCounter line(cell(member_after(i), index_, call_));
        woken += wake_sleepers(line);
    }
    if (woken != 0) waiter_->count_woken(woken);
}

Status CacheLineExchange::wait_for(int member) {
    return wait_at_line(
        *waiter_, FutexCounter(cell(index_, member, call_)), [&] { return has_arrived(member); },
        {.what = "a small collective operation", .needs = members_, .timeout = timeout_}, true, members_.at(member));
}

void CacheLineExchange::send_to_all(const std::byte* source, std::uint64_t step, std::uint64_t count) {
    for (int i = 1; i < members_.count; ++i) {
        const int member = member_after(i);
        send(member, source + static_cast<std::uint64_t>(member) * step, count);
    }
    if (count > 0)
        std::memcpy(cell(index_, index_, call_) + payload_offset, source + static_cast<std::uint64_t>(index_) * step,
                    count);
}

Status CacheLineExchange::run(const std::byte* source, std::uint64_t step, std::uint64_t count) {
    sleepers_woken_ = false;
    ++call_;
    send_to_all(source, step, count);
    for (int i = 1; i < members_.count; ++i) {
        if (has_arrived(member_after(i))) continue;
        // Done before a possibly long wait, or at the end if there is none.
        if (!sleepers_woken_) wake_sleepers_of_all();
        if (Status waited = wait_for(member_after(i)); !waited.ok()) return waited;
    }
    if (!sleepers_woken_) wake_sleepers_of_all();
    return {};
}

// Acquire. Partner: the release store in publish(). This PE's next write into a cell follows the member's read.
std::uint64_t BroadcastRing::last_acknowledged(int member) const {
    return FutexCounter(rings_.of(member)).counter().load(std::memory_order_acquire);
}

// Acquire. Partner: the release store in publish().
bool BroadcastRing::has_arrived(int root) const {
    return FutexCounter(cell(root, call_)).counter().load(std::memory_order_acquire) >= call_;
}

Status BroadcastRing::wait_for(FutexCounter line, std::uint64_t value, int member) {
    // Acquire, as in last_acknowledged() and has_arrived().
    const auto there = [&] { return line.counter().load(std::memory_order_acquire) >= value; };
    return wait_at_line(*waiter_, line, there, {.what = "a small broadcast", .needs = members_, .timeout = timeout_},
                        oversubscribed_, members_.at(member));
}

// Release. Partner: the acquire loads in last_acknowledged(), has_arrived() and wait_for(). The payload has been
// written, or read, before. The check for sleepers needs a fence, which costs as much as the rest, so it runs only
// where members sleep.
void BroadcastRing::publish(FutexCounter line) {
    line.counter().store(call_, std::memory_order_release);
    if (!oversubscribed_) return;
    full_fence();
    if (const std::uint32_t woken = wake_sleepers(line); woken != 0) waiter_->count_woken(woken);
}

Status BroadcastRing::wait_until_acknowledged(std::uint64_t call) {
    std::uint64_t all = call_;
    for (int member = 0; member < members_.count; ++member) {
        if (member == index_) continue;
        if (last_acknowledged(member) < call)
            if (Status waited = wait_for(FutexCounter(rings_.of(member)), call, member); !waited.ok()) return waited;
        all = std::min(all, last_acknowledged(member));
    }
    acknowledged_by_all_ = all;
    return {};
}

Status BroadcastRing::send(const std::byte* source, std::uint64_t count) {
    if (call_ > depth && acknowledged_by_all_ < call_ - depth)
        if (Status waited = wait_until_acknowledged(call_ - depth); !waited.ok()) return waited;
    std::byte* const there = cell(index_, call_);
    std::memcpy(there + payload_offset, source, count);
    publish(FutexCounter(there));
    return {};
}

Status BroadcastRing::receive(std::byte* dest, std::uint64_t count, int root) {
    if (!has_arrived(root))
        if (Status waited = wait_for(FutexCounter(cell(root, call_)), call_, root); !waited.ok()) return waited;
    if (dest != nullptr) std::memcpy(dest, cell(root, call_) + payload_offset, count);
    return {};
}

Status BroadcastRing::run(const std::byte* source, std::byte* dest, std::uint64_t count, int root) {
    ++call_;
    Status done = index_ == root ? send(source, count) : receive(dest, count, root);
    if (!done.ok()) return done;
    // The root copies its own source; dest may be the source.
    if (index_ == root && dest != nullptr && dest != source) std::memcpy(dest, source, count);
    if (call_ % acknowledge_every == 0) publish(FutexCounter(rings_.of(index_)));
    return {};
}

}  // namespace npushmem::coll
