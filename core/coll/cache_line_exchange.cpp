#include "core/coll/cache_line_exchange.hpp"

#include <cstring>

#include "core/base/full_fence.hpp"
#include "core/coll/line_wait.hpp"

namespace npushmem::coll {

void CacheLineExchange::send(int member, const std::byte* payload, std::uint64_t count) {
    std::byte* const there = cell(member, index_, call_);
    if (count > 0) std::memcpy(there + payload_offset, payload, count);
    // Release: pairs with the acquire load in has_arrived(). Whether somebody sleeps there is looked at later, when the
    // store need not be waited for any more.
    FutexCounter(there).counter().store(call_, std::memory_order_release);
}

bool CacheLineExchange::has_arrived(int member) const {
    // Acquire: pairs with the release store in send().
    return FutexCounter(cell(index_, member, call_)).counter().load(std::memory_order_acquire) == call_;
}

// The fence orders the stores of the call before the looks for sleepers, as FutexCounter::store does for one; see
// parking.hpp.
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
        // Before a wait that may be long, and, when there is none, at the end.
        if (!sleepers_woken_) wake_sleepers_of_all();
        if (Status waited = wait_for(member_after(i)); !waited.ok()) return waited;
    }
    if (!sleepers_woken_) wake_sleepers_of_all();
    return {};
}

}  // namespace npushmem::coll
