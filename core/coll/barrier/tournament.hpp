// In round r each remaining member is paired with the one whose number differs in bit r: the higher loses, signals the
// winner and waits; the lower waits for it and plays on. Who has no opponent goes on by itself. The champion, member 0,
// releases everybody. 2(n-1) messages; log2 n rounds up, one step down.
//
// Slots: one per round at the winner, each written by one opponent only, and the release. Each write has been waited
// for before the next one can be made: no parity.
#pragma once

#include <string_view>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct Tournament {
    static constexpr std::string_view name = "tournament";
    static constexpr std::string_view summary = "log2(n) rounds of pairs, the champion releases everybody";

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
