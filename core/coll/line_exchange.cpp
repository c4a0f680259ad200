#include "core/coll/line_exchange.hpp"

#include <fmt/core.h>

#include <cstring>

#include "core/base/full_fence.hpp"

namespace npushmem::coll {

namespace {

// Loads of one cell before anything else is done about it: longer than a line needs from one cache to another, shorter
// than it takes to let somebody else run.
constexpr int first_polls = 200;

}  // namespace

void LineExchange::send(int member, const std::byte* payload, std::uint64_t count) {
    std::byte* const there = cell(member, index_);
    if (count > 0) std::memcpy(there + payload_at, payload, count);
    // Release: pairs with the acquire load in has_come(). Whether somebody sleeps there is looked at later, when the
    // store need not be waited for any more.
    SharedLine(there).counter().store(call_, std::memory_order_release);
}

bool LineExchange::has_come(int member) const {
    // Acquire: pairs with the release store in send().
    return SharedLine(cell(index_, member)).counter().load(std::memory_order_acquire) == call_;
}

// The fence orders the stores of the call before the looks for sleepers, as SharedLine::store does for one; see
// parking.hpp.
void LineExchange::wake_sleepers_of_all() {
    told_ = true;
    full_fence();
    std::uint32_t woken = 0;
    for (int i = 0; i < members_.count; ++i) {
        if (i == index_) continue;
        SharedLine line(cell(i, index_));
        woken += wake_sleepers(line);
    }
    if (woken != 0) waiter_->count_woken(woken);
}

Status LineExchange::wait_for(int member) {
    for (int i = 0; i < first_polls && waiter_->budget().polls != 0; ++i)
        if (has_come(member)) return {};
    if (!told_) wake_sleepers_of_all();
    ParkingOn parking{SharedLine(cell(index_, member))};
    const WaitFor what{
        .what = "a small collective operation", .needs = members_, .timeout = timeout_, .parking = &parking};
    WaitFailure failure;
    const Code code = waiter_->until([&] { return has_come(member); }, what, &failure);
    if (parking.woken() != 0) waiter_->count_woken(parking.woken());
    if (code == Code::ok) return {};
    return {code, fmt::format("{}; nothing has come from PE {}", describe(what, failure), members_.at(member))};
}

Status LineExchange::run(const std::byte* source, std::uint64_t step, std::uint64_t count) {
    ++call_;
    told_ = false;
    const int n = members_.count;
    const auto part = [&](int member) { return source + static_cast<std::uint64_t>(member) * step; };
    for (int i = 1; i < n; ++i) {
        const int member = index_ + i < n ? index_ + i : index_ + i - n;
        send(member, part(member), count);
    }
    if (count > 0) std::memcpy(cell(index_, index_) + payload_at, part(index_), count);
    for (int i = 1; i < n; ++i) {
        const int member = index_ + i < n ? index_ + i : index_ + i - n;
        if (has_come(member)) continue;
        if (Status come = wait_for(member); !come.ok()) return come;
    }
    if (!told_) wake_sleepers_of_all();
    return {};
}

}  // namespace npushmem::coll
