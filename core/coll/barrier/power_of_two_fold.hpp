// What lets schedules for powers of two serve any n: the members beyond the largest power of two fold into a partner
// before the exchange and are released by it after.
//
// Slots: the folded member's arrival at its partner, the release at the folded member. Each is written again only after
// the other has been waited for: no parity.
#pragma once

#include <bit>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct PowerOfTwoFold {
    static constexpr int slots = 2;

    static constexpr int base_size(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

    // Runs `exchange`, among the members below base_size(n), between the folding and the release.
    template <Fabric F, class Exchange>
    static Code run_with_fold(F& fabric, const BarrierCall& call, Exchange&& exchange) {
        const int power = base_size(call.n);
        if (call.index >= power) return wait_folded(fabric, call, call.index - power);
        const bool has_folded = call.index < call.n - power;
        const int folded = call.index + power;
        Code code = Code::ok;
        if (has_folded) code = fabric.wait({call.index, call.first_slot, folded, 0}, call.generation);
        if (code == Code::ok) code = exchange();
        if (code == Code::ok && has_folded) code = fabric.signal(folded, call.first_slot + 1, call.generation);
        return code;
    }

private:
    template <Fabric F>
    static Code wait_folded(F& fabric, const BarrierCall& call, int partner) {
        const Code code = fabric.signal(partner, call.first_slot, call.generation);
        if (code != Code::ok) return code;
        return fabric.wait({call.index, call.first_slot + 1, partner, 1}, call.generation);
    }
};

}  // namespace npushmem::barrier
