#include "core/coll/line_exchange.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/base/full_fence.hpp"

namespace npushmem::coll {

namespace {

// Loads of one cell before anything else is done about it: longer than a line needs from one cache to another, shorter
// than it takes to let somebody else run.
constexpr int first_polls = 200;

}  // namespace

void LineExchange::send(int member, const std::byte* payload, std::uint64_t count) {
    std::byte* const there = cell(member, index_, call_);
    if (count > 0) std::memcpy(there + payload_at, payload, count);
    // Release: pairs with the acquire load in has_come(). Whether somebody sleeps there is looked at later, when the
    // store need not be waited for any more.
    SharedLine(there).counter().store(call_, std::memory_order_release);
}

// A later call in the cell says as much.
bool LineExchange::has_come(int member, std::uint64_t call) const {
    // Acquire: pairs with the release store in send().
    return barrier::reached(SharedLine(cell(index_, member, call)).counter().load(std::memory_order_acquire), call);
}

// The fence orders the stores of the call before the looks for sleepers, as SharedLine::store does for one; see
// parking.hpp.
void LineExchange::wake_sleepers_of_all() {
    told_ = true;
    full_fence();
    std::uint32_t woken = 0;
    for (int i = 1; i < members_.count; ++i) {
        SharedLine line(cell(turned(i), index_, call_));
        woken += wake_sleepers(line);
    }
    if (woken != 0) waiter_->count_woken(woken);
}

Status LineExchange::wait_for(int member, std::uint64_t call, bool may_park) {
    for (int i = 0; i < first_polls && waiter_->budget().polls != 0; ++i)
        if (has_come(member, call)) return {};
    ParkingOn parking{SharedLine(cell(index_, member, call))};
    const WaitFor what{.what = "a small collective operation",
                       .needs = members_,
                       .timeout = timeout_,
                       .parking = may_park ? &parking : nullptr};
    WaitFailure failure;
    const Code code = waiter_->until([&] { return has_come(member, call); }, what, &failure);
    if (parking.woken() != 0) waiter_->count_woken(parking.woken());
    if (code == Code::ok) return {};
    return {code, fmt::format("{}; nothing has come from PE {}", describe(what, failure), members_.at(member))};
}

// Looks for the newest call first: what is learnt now need not be looked for in the next calls.
std::uint64_t LineExchange::newest_seen(int member, std::uint64_t least) const {
    std::uint64_t call = call_ - 1;
    while (call > least && !has_come(member, call)) --call;
    return call;
}

Status LineExchange::wait_until_left(std::uint64_t call) {
    std::uint64_t all = call_;
    for (int i = 1; i < members_.count; ++i) {
        const std::uint64_t seen = newest_seen(turned(i), call);
        all = std::min(all, std::max(seen, call + 1));
        if (seen > call || has_come(turned(i), call + 1)) continue;
        if (Status come = wait_for(turned(i), call + 1, crowded_); !come.ok()) return come;
    }
    all_seen_ = all;
    return {};
}

Status LineExchange::send_to_all(const std::byte* source, std::uint64_t step, std::uint64_t count) {
    told_ = false;
    ++call_;
    // What is written over is of the call `depth` ago: everybody must have left that one.
    if (call_ > depth && all_seen_ < call_ - depth + 1)
        if (Status left = wait_until_left(call_ - depth); !left.ok()) return left;
    for (int i = 1; i < members_.count; ++i) {
        const int member = turned(i);
        send(member, source + static_cast<std::uint64_t>(member) * step, count);
    }
    if (count > 0)
        std::memcpy(cell(index_, index_, call_) + payload_at, source + static_cast<std::uint64_t>(index_) * step,
                    count);
    return {};
}

Status LineExchange::run(const std::byte* source, std::uint64_t step, std::uint64_t count) {
    if (Status sent = send_to_all(source, step, count); !sent.ok()) return sent;
    for (int i = 1; i < members_.count; ++i) {
        if (has_come(turned(i), call_)) continue;
        // Before a wait that may be long, and, when there is none, at the end.
        if (!told_) wake_sleepers_of_all();
        if (Status come = wait_for(turned(i), call_, true); !come.ok()) return come;
    }
    all_seen_ = call_;
    if (!told_) wake_sleepers_of_all();
    return {};
}

// Nobody parks in a broadcast unless the job is crowded: to look for sleepers costs the root as much as the trip.
Status LineExchange::broadcast(const std::byte* source, std::uint64_t count, int root) {
    if (Status sent = send_to_all(source, 0, index_ == root ? count : 0); !sent.ok()) return sent;
    if (crowded_) wake_sleepers_of_all();
    if (index_ == root || has_come(root, call_)) return {};
    return wait_for(root, call_, crowded_);
}

}  // namespace npushmem::coll
