// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_hosts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/coll/cache_line_exchange.hpp"

namespace npushmem {

std::vector<std::vector<int>> members_by_host(const Members& members, const HostLayout& layout) {
    std::unordered_map<int, std::size_t> numbers;  // of the layout's hosts, in the order of their first members
    std::vector<std::vector<int>> by_host;
    for (int member = 0; member < members.count(); ++member) {
        const std::size_t host = numbers.try_emplace(layout.host_of(members.at(member)), by_host.size()).first->second;
        if (host == by_host.size()) by_host.emplace_back();
        by_host[host].push_back(member);
    }
    return by_host;
}

std::unique_ptr<const coll::HostGrid> host_grid_of(const std::vector<std::vector<int>>& by_host, int own_index) {
    const std::size_t each = by_host.front().size();
    if (by_host.size() < 2) return nullptr;
    if (std::ranges::any_of(by_host, [&](const auto& host) { return host.size() != each; })) return nullptr;
    coll::HostGrid grid;
    grid.hosts = static_cast<int>(by_host.size());
    grid.per_host = static_cast<int>(each);
    for (const auto& host : by_host) grid.members.insert(grid.members.end(), host.begin(), host.end());
    grid.own = grid.position_of(own_index);
    return std::make_unique<const coll::HostGrid>(std::move(grid));
}

Status TeamHostSignals::put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes,
                            std::uint64_t signal_at, std::uint64_t signal) {
    return resources_.remote.put_signal(memory_.members().at(member), offset, source, bytes, signal_at, signal,
                                        NPUSHMEM_SIGNAL_SET, RemoteAccess::Completion::unawaited);
}

WaitFor TeamHostSignals::wait_description() const {
    return {.what = "a collective operation between hosts",
            .needs = memory_.members().range(),
            .timeout = resources_.timeout};
}

Result<std::uint64_t> TeamHostSignals::wait(std::uint64_t signal_at, std::uint64_t least, int sender) {
    const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(resources_.own_slice + signal_at));
    std::uint64_t seen = 0;
    // Acquire. Partner: the transport's delivery.
    const auto arrived = [&] { return (seen = word.load(std::memory_order_acquire)) >= least; };
    // A transport may delay this PE's own messages until it is driven, and deliver others only then. Its events may
    // have to do with other PEs.
    const auto drive = [&] {
        Status driven = resources_.remote.progress();
        if (event_.ok()) event_ = std::move(driven);
    };
    const auto ready = [&] { return arrived() || (drive(), arrived()); };
    AwaitedBytesParking parking = parking_for_word(resources_, signal_at);
    WaitFor what = wait_description();
    what.parking = &parking;
    what.writers_wake = true;
    WaitFailure failure;
    const Code code = waiter_.until(ready, what, &failure);
    if (code != Code::ok)
        return Status{code, fmt::format("{}; received nothing from PE {}", describe(what, failure),
                                        memory_.members().at(sender))};
    return seen;
}

// The counter's store is sequentially consistent, as the check for sleepers needs it. Partner: the acquire load in
// wait_for().
Status TeamHostSignals::announce(std::uint64_t counter_at, std::uint64_t step, const coll::Outcome& outcome) {
    const coll::HostCounter own(resources_.own_slice + counter_at);
    if (outcome.kind != coll::Outcome::ok) own.fail(step, outcome);
    FutexCounter counter = own.counter();
    counter.store(step);
    if (const std::uint32_t woken = wake_sleepers(counter); woken != 0) waiter_.count_woken(woken);
    return std::exchange(event_, {});
}

int TeamHostSignals::dead_pe() {
    if (resources_.liveness == nullptr) return -1;
    return resources_.liveness->find_dead(memory_.members().range()).value_or(-1);
}

Result<coll::Outcome> TeamHostSignals::wait_for(int member, std::uint64_t counter_at, std::uint64_t step) {
    const coll::HostCounter theirs(memory_.address(member, counter_at));
    const FutexCounter counter = theirs.counter();
    const auto arrived = [&] { return counter.counter().load(std::memory_order_acquire) >= step; };
    if (!arrived()) {
        Status done =
            coll::wait_at_line(waiter_, counter, arrived, wait_description(), true, memory_.members().at(member));
        if (!done.ok()) return done;
    }
    return theirs.outcome(step);
}

}  // namespace npushmem
