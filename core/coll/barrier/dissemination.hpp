// Dissemination: in round r every member signals the one 2^r further and waits for the one 2^r before. After
// ceil(log2 n) rounds everybody has heard of everybody, n messages a round. The shortest way when every PE has a core;
// with fewer cores each round costs each PE a context switch.
//
// Slots: one per round and parity. A member that has left call g may signal call g+1 before the receiver's slot has
// been reached by its signal of call g; call g+2 it can only signal after the receiver has entered g+1, so two parities
// are enough.
#pragma once

#include <string_view>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct Dissemination {
    static constexpr std::string_view name = "dissemination";
    static constexpr std::string_view summary = "log2(n) rounds, each signals the PE 2^round further";

    static constexpr int slots(int n) { return 2 * ceil_log2(n); }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        const int rounds = ceil_log2(call.n);
        const int first = call.first_slot + (call.generation % 2 == 0 ? 0 : rounds);
        for (int round = 0; round < rounds; ++round) {
            const Code code = exchange(fabric, call, first + round, round);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }

private:
    template <Fabric F>
    static Code exchange(F& fabric, const BarrierCall& call, int slot, int round) {
        const int distance = 1 << round;  // < n
        const Code code = fabric.signal(wrapped_index(call.n, call.index, distance), slot, call.generation);
        if (code != Code::ok) return code;
        const int before = wrapped_index(call.n, call.index, -distance);
        return fabric.wait({.member = call.index, .slot = slot, .from = before, .round = round}, call.generation);
    }
};

}  // namespace npushmem::barrier
