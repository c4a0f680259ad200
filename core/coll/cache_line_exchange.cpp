// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/cache_line_exchange.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/host_facts.hpp"
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

Status CacheLineExchange::run(const std::byte* source, std::uint64_t count, bool each) {
    sleepers_woken_ = false;
    ++call_;
    set_received(cell(index_, 0, call_) + payload_offset, cell_bytes);
    send_to_all(source, each ? count : 0, count);
    for (int i = 1; i < members_.count; ++i) {
        if (has_arrived(member_after(i))) continue;
        // Done before a possibly long wait, or at the end if there is none.
        if (!sleepers_woken_) wake_sleepers_of_all();
        if (Status waited = wait_for(member_after(i)); !waited.ok()) return waited;
    }
    if (!sleepers_woken_) wake_sleepers_of_all();
    return {};
}

namespace {

// The number at the head of a message.
std::atomic_ref<std::uint64_t> header_of(std::byte* message) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(message));
}

}  // namespace

// Release. Partner: the acquire load in wait_until_acknowledged(): what this member has read may be overwritten. The
// check for sleepers needs a fence, which costs as much as the rest, so it runs only where members sleep.
void BroadcastRing::publish(FutexCounter line, std::uint64_t call) {
    line.counter().store(call, std::memory_order_release);
    if (!oversubscribed_) return;
    full_fence();
    if (const std::uint32_t woken = wake_sleepers(line); woken != 0) waiter_->count_woken(woken);
}

template <class Ready>
Status BroadcastRing::wait_for(const Ready& ready, FutexCounter line, int member) {
    if (ready()) return {};
    return wait_at_line(*waiter_, line, ready, {.what = "a small broadcast", .needs = members_, .timeout = timeout_},
                        oversubscribed_, members_.at(member));
}

Status BroadcastRing::wait_until_acknowledged(std::uint64_t call) {
    for (int member = 0; member < members_.count; ++member) {
        const FutexCounter line = acknowledged(member);
        // Acquire. Partner: the release store in publish().
        const auto has_left = [&] { return line.counter().load(std::memory_order_acquire) >= call; };
        if (Status waited = wait_for(has_left, line, member); !waited.ok()) return waited;
    }
    return {};
}

// A root that fails stays where it is, so its next call does not overwrite what others may still read.
Status BroadcastRing::enter_next_segment(int root) {
    Place& place = places_[static_cast<std::size_t>(root)];
    const auto next = static_cast<std::uint32_t>((place.segment + 1) % segments);
    publish(acknowledged(index_), call_ - 1);
    if (root == index_)
        if (Status waited = wait_until_acknowledged(last_calls_[next]); !waited.ok()) return waited;
    place = {next, 0};
    return {};
}

// Release. Partner: the acquire load in receive(). The published number follows: who reads it finds the header.
void BroadcastRing::send(const std::byte* source, std::uint64_t count, std::byte* message) {
    if (count > 0) std::memcpy(message + header_bytes, source, count);
    header_of(message).store(call_, std::memory_order_release);
    if (oversubscribed_) publish(published(index_), call_);
}

Status BroadcastRing::receive(std::byte* dest, std::uint64_t count, std::byte* message, int root) {
    const auto has_arrived = [&] { return header_of(message).load(std::memory_order_acquire) == call_; };
    if (Status waited = wait_for(has_arrived, published(root), root); !waited.ok()) return waited;
    if (dest != nullptr && count > 0) std::memcpy(dest, message + header_bytes, count);
    return {};
}

Status BroadcastRing::broadcast(const std::byte* source, std::byte* dest, std::uint64_t count, int root) {
    ++call_;
    Place& place = places_[static_cast<std::size_t>(root)];
    const std::uint64_t length = rounded_up(header_bytes + count, 8);
    if (place.used + length > segment_bytes)
        if (Status entered = enter_next_segment(root); !entered.ok()) return entered;
    std::byte* const message = at(root, place);
    place.used += static_cast<std::uint32_t>(length);
    if (index_ != root) return receive(dest, count, message, root);
    last_calls_[place.segment] = call_;
    // Relaxed: the message's header publishes it.
    if (place.used + header_bytes <= segment_bytes) header_of(at(root, place)).store(0, std::memory_order_relaxed);
    send(source, count, message);
    // The root copies its own source; dest may be the source.
    if (dest != nullptr && dest != source && count > 0) std::memcpy(dest, source, count);
    return {};
}

}  // namespace npushmem::coll
