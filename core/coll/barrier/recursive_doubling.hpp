// In round r every member exchanges signals with the one whose number differs in bit r; members beyond the largest
// power of two are folded in (fold.hpp). p log2 p + 2(n - p) messages in log2 p rounds, p = that power.
//
// Slots: the fold's, then one per round and parity. A member that has left call g may signal call g+1 before its signal
// of call g has landed, as in dissemination.hpp.
#pragma once

#include <string_view>

#include "core/coll/barrier/fold.hpp"
#include "core/coll/barrier/turn.hpp"

namespace npushmem::barrier {

struct RecursiveDoubling {
    static constexpr std::string_view name = "recursive_doubling";
    static constexpr std::string_view summary =
        "pairwise exchange, bit by bit: log2(n) rounds (+2 unless a power of 2)";

    static constexpr int slots(int n) { return Fold::slots + 2 * ceil_log2(Fold::kept(n)); }

    template <Fabric F>
    static Code run(F& fabric, const Turn& turn) {
        return Fold::around_exchange(fabric, turn, [&] { return exchange_all(fabric, turn); });
    }

private:
    template <Fabric F>
    static Code exchange_all(F& fabric, const Turn& turn) {
        const int rounds = ceil_log2(Fold::kept(turn.n));
        const int first = turn.first_slot + Fold::slots + (turn.generation % 2 == 0 ? 0 : rounds);
        for (int round = 0; round < rounds; ++round) {
            const int partner = turn.index ^ (1 << round);
            Code code = fabric.signal(partner, first + round, turn.generation);
            if (code == Code::ok) code = fabric.wait({turn.index, first + round, partner, round}, turn.generation);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }
};

}  // namespace npushmem::barrier
