// Binomial tree: arrivals are gathered towards member 0, the release comes back the same way, deepest subtree first.
// 2(n-1) messages, the fewest, at the price of the longest chain: 2 ceil(log2 n) hops.
//
// Member i's parent is i without its lowest bit; its children are i + 2^k for the k below that bit. Slots: one per
// child (k), and one for the release. Each write to a slot has been waited for before the next one can be made, so no
// parity is needed.
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
    // members have come, the others have told so.
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

}  // namespace npushmem::barrier
