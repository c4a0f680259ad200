// Binomial tree: arrivals are gathered towards member 0, the release comes back the same way, deepest subtree first.
// 2(n-1) messages, the fewest, at the price of the longest chain: 2 ceil(log2 n) hops.
//
// Member i's parent is i without its lowest bit; its children are i + 2^k for the k below that bit. Slots: one per
// child (k), and one for the release. Each write to a slot has been waited for before the next one can be made, so no
// parity is needed.
#pragma once

#include <bit>
#include <string_view>

#include "core/coll/barrier/turn.hpp"

namespace npushmem::barrier {

struct Tree {
    static constexpr std::string_view name = "tree";
    static constexpr std::string_view summary = "binomial tree, gather and release: 2(n-1) messages";

    static constexpr int slots(int n) { return ceil_log2(n) + 1; }

    template <Fabric F>
    static Code run(F& fabric, const Turn& turn) {
        const Code code = arrive(fabric, turn);
        return code == Code::ok ? leave(fabric, turn) : code;
    }

    // The two halves, for schedules that do something at the root in between. After arrive the root knows that all
    // members have come, the others have told so.
    template <Fabric F>
    static Code arrive(F& fabric, const Turn& turn) {
        const Code code = gather(fabric, turn);
        if (code != Code::ok || turn.index == 0) return code;
        return fabric.signal(parent(turn), turn.first_slot + height(turn), turn.generation);
    }

    template <Fabric F>
    static Code leave(F& fabric, const Turn& turn) {
        const int release = turn.first_slot + ceil_log2(turn.n);
        if (turn.index != 0) {
            const Awaited awaited{turn.index, release, parent(turn), height(turn)};
            const Code code = fabric.wait(awaited, turn.generation);
            if (code != Code::ok) return code;
        }
        return release_children(fabric, turn, release);
    }

private:
    // Children are i + 2^k for k below this.
    static int height(const Turn& turn) {
        return turn.index == 0 ? ceil_log2(turn.n) : std::countr_zero(static_cast<unsigned>(turn.index));
    }

    static int parent(const Turn& turn) { return turn.index & (turn.index - 1); }

    static bool has_child(const Turn& turn, int k) { return (std::int64_t{1} << k) < turn.n - turn.index; }

    template <Fabric F>
    static Code gather(F& fabric, const Turn& turn) {
        for (int k = 0; k < height(turn) && has_child(turn, k); ++k) {
            const Awaited child{turn.index, turn.first_slot + k, turn.index + (1 << k), k};
            const Code code = fabric.wait(child, turn.generation);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }

    template <Fabric F>
    static Code release_children(F& fabric, const Turn& turn, int release) {
        for (int k = height(turn) - 1; k >= 0; --k) {
            if (!has_child(turn, k)) continue;
            const Code code = fabric.signal(turn.index + (1 << k), release, turn.generation);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }
};

}  // namespace npushmem::barrier
