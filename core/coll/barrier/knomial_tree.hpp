// Tree of radix k: a member's parent is its number with the lowest digit to the base k that is not 0 made 0. Arrivals
// are gathered towards member 0, the release comes back the same way, largest subtree first. 2(n-1) messages in
// 2 ceil(log_k n) levels of up to k-1 children each.
//
// Slots: one per level and digit of a child, then the release; each has one writer, whose last write has been waited
// for before the next. The release lies behind what the largest radix needs, so that calls with different radices may
// follow each other; a slot that then changes its writer does so between two calls, and every write to it has been
// waited for.
#pragma once

#include <string_view>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

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
    // Where a member hangs: children are index + j * k^l for the levels l below `level`.
    struct TreePosition {
        int level = 0;
        int digit = 0;           // the one that is cleared to come to the parent; 0: the root
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

}  // namespace npushmem::barrier
