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

#include "core/coll/barrier/turn.hpp"

namespace npushmem::barrier {

struct KnomialTree {
    static constexpr std::string_view name = "knomial_tree";
    static constexpr std::string_view summary = "tree of radix k (2 to 32), gather and release: 2(n-1) messages";
    static constexpr bool has_radix = true;

    static constexpr int slots(int n) { return slots_of_any_radix(n) + 1; }

    template <Fabric F>
    static Code run(F& fabric, const Turn& turn) {
        const Place place = place_of(turn);
        Code code = gather(fabric, turn, place);
        if (code == Code::ok && turn.index != 0) code = report(fabric, turn, place);
        return code == Code::ok ? release_children(fabric, turn, place) : code;
    }

private:
    // Where a member hangs: children are index + j * k^l for the levels l below `level`.
    struct Place {
        int level = 0;
        int digit = 0;           // the one that is cleared to come to the parent; 0: the root
        std::int64_t reach = 1;  // k^level
    };

    static Place place_of(const Turn& turn) {
        Place place;
        for (std::int64_t rest = turn.index; place.reach < turn.n; rest /= turn.radix) {
            place.digit = static_cast<int>(rest % turn.radix);
            if (place.digit != 0) break;
            place.reach *= turn.radix;
            ++place.level;
        }
        return place;
    }

    static int release_slot(const Turn& turn) { return turn.first_slot + slots_of_any_radix(turn.n); }

    template <Fabric F>
    static Code gather(F& fabric, const Turn& turn, const Place& place) {
        std::int64_t reach = 1;
        for (int level = 0; level < place.level; ++level, reach *= turn.radix) {
            for (int j = 1; j < turn.radix && turn.index + j * reach < turn.n; ++j) {
                const int slot = turn.first_slot + level * (turn.radix - 1) + j - 1;
                const int child = turn.index + static_cast<int>(j * reach);
                const Code code = fabric.wait({turn.index, slot, child, level}, turn.generation);
                if (code != Code::ok) return code;
            }
        }
        return Code::ok;
    }

    template <Fabric F>
    static Code report(F& fabric, const Turn& turn, const Place& place) {
        const int parent = turn.index - static_cast<int>(place.digit * place.reach);
        const int slot = turn.first_slot + place.level * (turn.radix - 1) + place.digit - 1;
        const Code code = fabric.signal(parent, slot, turn.generation);
        if (code != Code::ok) return code;
        return fabric.wait({turn.index, release_slot(turn), parent, place.level}, turn.generation);
    }

    template <Fabric F>
    static Code release_children(F& fabric, const Turn& turn, const Place& place) {
        std::int64_t reach = place.reach;
        for (int level = place.level; level > 0; --level) {
            reach /= turn.radix;
            for (int j = 1; j < turn.radix && turn.index + j * reach < turn.n; ++j) {
                const int child = turn.index + static_cast<int>(j * reach);
                const Code code = fabric.signal(child, release_slot(turn), turn.generation);
                if (code != Code::ok) return code;
            }
        }
        return Code::ok;
    }
};

}  // namespace npushmem::barrier
