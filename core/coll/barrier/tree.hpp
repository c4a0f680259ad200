// SPDX-License-Identifier: BSD-3-Clause
// Binomial tree: member 0 gathers the arrivals; the release returns the same way, deepest subtree first. 2(n-1)
// messages, the minimum, at the cost of the longest chain: 2 ceil(log2 n) hops.
//
// Member i's parent is i without its lowest bit; its children are i + 2^k for the k below that bit. Slots: one per
// child (k), and one for the release. Each write to a slot has been waited for before the next one, so no parity is
// needed.
#pragma once

#include <bit>
#include <string_view>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct Tree {
    static constexpr std::string_view name = "tree";
    static constexpr std::string_view summary = "binomial tree, gather and release: 2(n-1) messages";

    static constexpr int slots(int n) { return ceil_log2(n) + 1; }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        const Code code = arrive(fabric, call);
        return code == Code::ok ? leave(fabric, call) : code;
    }

    // The two halves, for schedules that do something at the root in between. After arrive the root knows that all
    // members have arrived, and the other members have reported it.
    template <Fabric F>
    static Code arrive(F& fabric, const BarrierCall& call) {
        const Code code = gather(fabric, call);
        if (code != Code::ok || call.index == 0) return code;
        return fabric.signal(parent(call), call.first_slot + height(call), call.generation);
    }

    template <Fabric F>
    static Code leave(F& fabric, const BarrierCall& call) {
        const int release = call.first_slot + ceil_log2(call.n);
        if (call.index != 0) {
            const AwaitedSlot awaited{call.index, release, parent(call), height(call)};
            const Code code = fabric.wait(awaited, call.generation);
            if (code != Code::ok) return code;
        }
        return release_children(fabric, call, release);
    }

private:
    // Children are i + 2^k for k below this.
    static int height(const BarrierCall& call) {
        return call.index == 0 ? ceil_log2(call.n) : std::countr_zero(static_cast<unsigned>(call.index));
    }

    static int parent(const BarrierCall& call) { return call.index & (call.index - 1); }

    static bool has_child(const BarrierCall& call, int k) { return (std::int64_t{1} << k) < call.n - call.index; }

    template <Fabric F>
    static Code gather(F& fabric, const BarrierCall& call) {
        for (int k = 0; k < height(call) && has_child(call, k); ++k) {
            const AwaitedSlot child{call.index, call.first_slot + k, call.index + (1 << k), k};
            const Code code = fabric.wait(child, call.generation);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }

    template <Fabric F>
    static Code release_children(F& fabric, const BarrierCall& call, int release) {
        for (int k = height(call) - 1; k >= 0; --k) {
            if (!has_child(call, k)) continue;
            const Code code = fabric.signal(call.index + (1 << k), release, call.generation);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }
};

// Tree of radix k: to get a member's parent, clear the lowest non-zero digit of its number to the base k. Member 0
// gathers the arrivals; the release returns the same way, largest subtree first. 2(n-1) messages in 2 ceil(log_k n)
// levels of up to k-1 children each.
//
// Slots: one per level and digit of a child, then the release. Each has one writer, whose last write has been waited
// for before the next. The position of the release suits the largest radix, so that calls with different radices may
// follow each other. A slot's writer can only change between two calls, when every write to it has been waited for.
struct KnomialTree {
    static constexpr std::string_view name = "knomial_tree";
    static constexpr std::string_view summary = "tree of radix k (2 to 32), gather and release: 2(n-1) messages";
    static constexpr bool has_radix = true;

    static constexpr int slots(int n) { return slots_of_any_radix(n) + 1; }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        const TreePosition position = position_of(call);
        Code code = gather(fabric, call, position);
        if (code == Code::ok && call.index != 0) code = report(fabric, call, position);
        return code == Code::ok ? release_children(fabric, call, position) : code;
    }

private:
    // A member's position: its children are index + j * k^l for the levels l below `level`.
    struct TreePosition {
        int level = 0;
        int digit = 0;           // the digit to clear for the parent; 0: the root
        std::int64_t reach = 1;  // k^level
    };

    static TreePosition position_of(const BarrierCall& call) {
        TreePosition position;
        for (std::int64_t rest = call.index; position.reach < call.n; rest /= call.radix) {
            position.digit = static_cast<int>(rest % call.radix);
            if (position.digit != 0) break;
            position.reach *= call.radix;
            ++position.level;
        }
        return position;
    }

    static int release_slot(const BarrierCall& call) { return call.first_slot + slots_of_any_radix(call.n); }

    template <Fabric F>
    static Code gather(F& fabric, const BarrierCall& call, const TreePosition& position) {
        std::int64_t reach = 1;
        for (int level = 0; level < position.level; ++level, reach *= call.radix) {
            for (int j = 1; j < call.radix && call.index + j * reach < call.n; ++j) {
                const int slot = call.first_slot + level * (call.radix - 1) + j - 1;
                const int child = call.index + static_cast<int>(j * reach);
                const Code code = fabric.wait({call.index, slot, child, level}, call.generation);
                if (code != Code::ok) return code;
            }
        }
        return Code::ok;
    }

    template <Fabric F>
    static Code report(F& fabric, const BarrierCall& call, const TreePosition& position) {
        const int parent = call.index - static_cast<int>(position.digit * position.reach);
        const int slot = call.first_slot + position.level * (call.radix - 1) + position.digit - 1;
        const Code code = fabric.signal(parent, slot, call.generation);
        if (code != Code::ok) return code;
        return fabric.wait({call.index, release_slot(call), parent, position.level}, call.generation);
    }

    template <Fabric F>
    static Code release_children(F& fabric, const BarrierCall& call, const TreePosition& position) {
        std::int64_t reach = position.reach;
        for (int level = position.level; level > 0; --level) {
            reach /= call.radix;
            for (int j = 1; j < call.radix && call.index + j * reach < call.n; ++j) {
                const int child = call.index + static_cast<int>(j * reach);
                const Code code = fabric.signal(child, release_slot(call), call.generation);
                if (code != Code::ok) return code;
            }
        }
        return Code::ok;
    }
};

// Tournament: in round r each remaining member is paired with the one whose number differs in bit r. The higher loses:
// it signals the winner and waits. The lower waits for it and continues, as does a member without an opponent. The
// champion, member 0, releases all members. 2(n-1) messages; log2 n rounds up, one step down.
//
// Slots: one per round at the winner, each written by one opponent only, and the release. Each write has been waited
// for before the next one, so no parity is needed.
struct Tournament {
    static constexpr std::string_view name = "tournament";
    static constexpr std::string_view summary = "log2(n) rounds of pairs, the champion releases all";

    static constexpr int slots(int n) { return ceil_log2(n) + 1; }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        for (int round = 0; round < ceil_log2(call.n); ++round) {
            const int opponent = call.index ^ (1 << round);
            if (opponent < call.index) return lose(fabric, call, opponent, round);
            if (opponent >= call.n) continue;
            const Code code = fabric.wait({call.index, call.first_slot + round, opponent, round}, call.generation);
            if (code != Code::ok) return code;
        }
        return release_all(fabric, call);
    }

private:
    static int release_slot(const BarrierCall& call) { return call.first_slot + ceil_log2(call.n); }

    template <Fabric F>
    static Code lose(F& fabric, const BarrierCall& call, int winner, int round) {
        const Code code = fabric.signal(winner, call.first_slot + round, call.generation);
        if (code != Code::ok) return code;
        return fabric.wait({call.index, release_slot(call), 0, round + 1}, call.generation);
    }

    template <Fabric F>
    static Code release_all(F& fabric, const BarrierCall& call) {
        Code code = Code::ok;
        for (int member = 1; member < call.n && code == Code::ok; ++member)
            code = fabric.signal(member, release_slot(call), call.generation);
        return code;
    }
};

}  // namespace npushmem::barrier
