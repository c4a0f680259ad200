// What lets schedules for powers of two serve any n: the members beyond the largest power of two fold into a partner
// before the exchange and are released by it after.
//
// Slots: the folded member's arrival at its partner, the release at the folded member. Each is written again only after
// the other has been waited for: no parity.
#pragma once

#include <bit>

#include "core/coll/barrier/turn.hpp"

namespace npushmem::barrier {

struct Fold {
    static constexpr int slots = 2;

    static constexpr int kept(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

    // Runs `exchange`, among the members below kept(n), between the folding and the release.
    template <Fabric F, class Exchange>
    static Code around_exchange(F& fabric, const Turn& turn, Exchange&& exchange) {
        const int power = kept(turn.n);
        if (turn.index >= power) return wait_folded(fabric, turn, turn.index - power);
        const bool has_folded = turn.index < turn.n - power;
        const int folded = turn.index + power;
        Code code = Code::ok;
        if (has_folded) code = fabric.wait({turn.index, turn.first_slot, folded, 0}, turn.generation);
        if (code == Code::ok) code = exchange();
        if (code == Code::ok && has_folded) code = fabric.signal(folded, turn.first_slot + 1, turn.generation);
        return code;
    }

private:
    template <Fabric F>
    static Code wait_folded(F& fabric, const Turn& turn, int partner) {
        const Code code = fabric.signal(partner, turn.first_slot, turn.generation);
        if (code != Code::ok) return code;
        return fabric.wait({turn.index, turn.first_slot + 1, partner, 1}, turn.generation);
    }
};

}  // namespace npushmem::barrier
