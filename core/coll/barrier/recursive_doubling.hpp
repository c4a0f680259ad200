// In round r every member exchanges signals with the one whose number differs in bit r; members beyond the largest
// power of two are folded in (power_of_two_fold.hpp). p log2 p + 2(n - p) messages in log2 p rounds, p = that power.
//
// Slots: the fold's, then one per round and parity. A member that has left call g may signal call g+1 before its signal
// of call g has landed, as in dissemination.hpp.
#pragma once

#include <string_view>

#include "core/coll/barrier/power_of_two_fold.hpp"
#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct RecursiveDoubling {
    static constexpr std::string_view name = "recursive_doubling";
    static constexpr std::string_view summary =
        "pairwise exchange, bit by bit: log2(n) rounds (+2 unless a power of 2)";

    static constexpr int slots(int n) { return PowerOfTwoFold::slots + 2 * ceil_log2(PowerOfTwoFold::base_size(n)); }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        return PowerOfTwoFold::run_with_fold(fabric, call, [&] { return exchange_all(fabric, call); });
    }

private:
    template <Fabric F>
    static Code exchange_all(F& fabric, const BarrierCall& call) {
        const int rounds = ceil_log2(PowerOfTwoFold::base_size(call.n));
        const int first = call.first_slot + PowerOfTwoFold::slots + (call.generation % 2 == 0 ? 0 : rounds);
        for (int round = 0; round < rounds; ++round) {
            const int partner = call.index ^ (1 << round);
            Code code = fabric.signal(partner, first + round, call.generation);
            if (code == Code::ok) code = fabric.wait({call.index, first + round, partner, round}, call.generation);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }
};

}  // namespace npushmem::barrier
