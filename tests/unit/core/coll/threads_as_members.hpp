// Members of a collective operation as threads of one process, over memory of the test's own.
#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/wait.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"

namespace npushmem::coll::test {

// Sleeps at once and for long: whoever is not woken is missed by the deadline.
inline constexpr WaitBudget sleeps_at_once{0, {}, {}, std::chrono::seconds{100}, std::chrono::seconds{100}};
inline constexpr WaitBudget yields{0, {}, std::chrono::milliseconds{1}};

// Operation: CacheLineExchange or BroadcastRing. `More`: what its constructor takes between the member's index and the
// waiter.
template <class Operation, class... More>
struct ThreadsAsMembers {
    struct alignas(64) Memory {
        std::byte bytes[Operation::bytes] = {};
    };

    ThreadsAsMembers(int count, WaitBudget chosen, More... further)
        : n(count), budget(chosen), more(further...), memory(static_cast<std::size_t>(count)) {}

    Operation member(int index, std::chrono::nanoseconds timeout) {
        return std::apply(
            [&](const auto&... further) {
                return Operation{barrier::StridedStates{memory[0].bytes, sizeof(Memory)},
                                 {0, 1, n},
                                 index,
                                 further...,
                                 waiter,
                                 timeout};
            },
            more);
    }
    // body(operation, index) in each.
    void run(const std::function<void(Operation&, int)>& body) {
        std::vector<std::jthread> threads;
        for (int i = 0; i < n; ++i)
            threads.emplace_back([&, i] {
                Operation operation = member(i, std::chrono::seconds{60});
                body(operation, i);
            });
    }

    int n;
    WaitBudget budget;
    std::tuple<More...> more;
    std::vector<Memory> memory;
    SystemWaitOs os;
    WaitCounters counters;
    Waiter waiter{budget, os, counters};
};

}  // namespace npushmem::coll::test
