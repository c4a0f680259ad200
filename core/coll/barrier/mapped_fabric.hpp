// SPDX-License-Identifier: BSD-3-Clause
// The fabric of members that map each other's state: signals are stores, waits are loads, without calls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/parking.hpp"
#include "core/base/wait.hpp"
#include "core/coll/barrier/algorithms.hpp"
#include "core/coll/barrier/schedule.hpp"
#include "core/coll/barrier/signal_fabric.hpp"

namespace npushmem::barrier {

// The barrier's state in symmetric memory: one 64-byte line for each slot, so that no two members poll one line for
// different reasons.
//
//     offset 0                                            of each member's state, all zero before the first call
//     | line 0: slot 0 of the first algorithm | line 1 | ... | first line of the second algorithm | ...
//     each line is a FutexCounter: the slot's value, and how many sleep on it
//
// Size and places are functions of the team's size alone (see AlgorithmList), so every member computes the same.

inline constexpr std::size_t line_bytes = FutexCounter::bytes;

// Bytes of state that each member of a team of n provides, aligned to a line and zero.
constexpr std::size_t state_bytes(int n) { return static_cast<std::size_t>(Algorithms::slots(n)) * line_bytes; }

static_assert(state_bytes(1'000'000) <= 64U << 10, "memory per PE must not grow with n");

inline FutexCounter line_at(std::byte* state, int slot) {
    return FutexCounter(state + static_cast<std::size_t>(slot) * line_bytes);
}

inline std::atomic_ref<std::uint64_t> slot_at(std::byte* state, int slot) { return line_at(state, slot).counter(); }

// Locates the members' states at equal distances: one mapping per node, or a strided team in it.
struct StridedStates {
    std::byte* first = nullptr;  // member 0's
    std::ptrdiff_t distance = 0;

    [[nodiscard]] std::byte* of(int member) const { return first + member * distance; }
};

// Locates the members' states by a table, which must outlive the fabric; adds `offset` to its entries.
struct TabledStates {
    std::span<std::byte* const> table;
    std::uint64_t offset = 0;

    [[nodiscard]] std::byte* of(int member) const { return table[static_cast<std::size_t>(member)] + offset; }
};

// Strided, unless there is a table.
struct MemberStates {
    StridedStates strided;
    TabledStates tabled;

    MemberStates() = default;
    MemberStates(const StridedStates& states) : strided(states) {}  // implicit: one of the two
    MemberStates(const TabledStates& states) : tabled(states) {}    // implicit: one of the two
    [[nodiscard]] bool has_table() const { return !tabled.table.empty(); }
    [[nodiscard]] std::byte* of(int member) const { return has_table() ? tabled.of(member) : strided.of(member); }
    // Returns the addresses `offset` bytes after these.
    [[nodiscard]] MemberStates behind(std::uint64_t offset) const {
        if (has_table()) return TabledStates{tabled.table, tabled.offset + offset};
        return StridedStates{strided.first + offset, strided.distance};
    }
};

// For one member; one thread at a time. The waiter must outlive it.
template <class States>
class MappedFabric {
public:
    // `members` are the world PEs by team index; every wait depends on all of them. `timeout` 0: none.
    MappedFabric(States states, PeRange members, const Waiter& waiter, std::chrono::nanoseconds timeout = {})
        : states_(states), members_(members), waiter_(&waiter), timeout_(timeout) {}

    Code signal(int member, int slot, std::uint64_t value) {
        // Release. Partner: the acquire load in wait(). The check for sleepers must not precede the store.
        FutexCounter line = line_at(states_.of(member), slot);
        line.store(value);
        wake(line);
        return Code::ok;
    }

    Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) {
        // Release and acquire. Partner: the later adds. The last member to add has seen the earlier writes of all
        // others, and passes them on with its release signal.
        FutexCounter line = line_at(states_.of(member), slot);
        before = line.counter().fetch_add(value);
        wake(line);
        return Code::ok;
    }

    Code wait(const AwaitedSlot& awaited, std::uint64_t value) {
        if (reached(load(awaited), value)) return Code::ok;
        return wait_slow_path(awaited, value);
    }

    // Stores arrive without further action.
    Code complete() { return Code::ok; }

    [[nodiscard]] bool polls_peers() const { return true; }
    [[nodiscard]] const FabricFailure& failure() const { return failure_; }

private:
    [[nodiscard]] std::uint64_t load(const AwaitedSlot& awaited) const {
        // Acquire. Partner: the release store in signal().
        return slot_at(states_.of(awaited.member), awaited.slot).load(std::memory_order_acquire);
    }

    void wake(FutexCounter& line) {
        if (const std::uint32_t woken = wake_sleepers(line); woken != 0) [[unlikely]]
            waiter_->count_woken(woken);
    }

    [[gnu::noinline]] Code wait_slow_path(const AwaitedSlot& awaited, std::uint64_t value) {
        FutexParking parking(line_at(states_.of(awaited.member), awaited.slot));
        // A member may miss a signal because some other member is dead, so the wait depends on all members.
        const WaitFor what{
            .what = "a barrier", .needs = members_, .timeout = timeout_, .parking = &parking, .writers_wake = true};
        WaitFailure reason;
        const Code code = waiter_->until([&] { return reached(load(awaited), value); }, what, &reason);
        if (parking.woken() != 0) waiter_->count_woken(parking.woken());
        if (code != Code::ok) failure_ = {awaited, value, load(awaited), reason};
        return code;
    }

    States states_;
    PeRange members_;
    const Waiter* waiter_;
    std::chrono::nanoseconds timeout_;
    FabricFailure failure_;
};

}  // namespace npushmem::barrier
