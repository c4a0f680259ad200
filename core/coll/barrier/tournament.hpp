// In round r the members still in play meet the one whose number differs in bit r: the higher loses, tells the winner
// and waits; the lower waits for it and plays on. Who has no opponent goes on by itself. The champion, member 0,
// releases everybody. 2(n-1) messages; log2 n rounds up, one step down.
//
// Slots: one per round at the winner, each written by one opponent only, and the release. Each write has been waited
// for before the next one can be made: no parity.
#pragma once

#include <string_view>

#include "core/coll/barrier/turn.hpp"

namespace npushmem::barrier {

struct Tournament {
    static constexpr std::string_view name = "tournament";
    static constexpr std::string_view summary = "log2(n) rounds of pairs, the champion releases everybody";

    static constexpr int slots(int n) { return ceil_log2(n) + 1; }

    template <Fabric F>
    static Code run(F& fabric, const Turn& turn) {
        for (int round = 0; round < ceil_log2(turn.n); ++round) {
            const int opponent = turn.index ^ (1 << round);
            if (opponent < turn.index) return lose(fabric, turn, opponent, round);
            if (opponent >= turn.n) continue;
            const Code code = fabric.wait({turn.index, turn.first_slot + round, opponent, round}, turn.generation);
            if (code != Code::ok) return code;
        }
        return release_all(fabric, turn);
    }

private:
    static int release_slot(const Turn& turn) { return turn.first_slot + ceil_log2(turn.n); }

    template <Fabric F>
    static Code lose(F& fabric, const Turn& turn, int winner, int round) {
        const Code code = fabric.signal(winner, turn.first_slot + round, turn.generation);
        if (code != Code::ok) return code;
        return fabric.wait({turn.index, release_slot(turn), 0, round + 1}, turn.generation);
    }

    template <Fabric F>
    static Code release_all(F& fabric, const Turn& turn) {
        Code code = Code::ok;
        for (int member = 1; member < turn.n && code == Code::ok; ++member)
            code = fabric.signal(member, release_slot(turn), turn.generation);
        return code;
    }
};

}  // namespace npushmem::barrier
