// Recursive doubling by put and get: in each round a member looks at its partner until it has come to the round, puts
// its own arrival there, and waits for the partner's. Three messages where recursive_doubling has one: about 3 p log2
// p, log2 p round trips.
//
// Slots: the fold's; the stage, written by its own member only (call and round as one growing number); then one per
// round. No parity: a member puts into a round's slot only after it has seen the partner in that very round, so what it
// put there in the call before has been waited for.
#pragma once

#include <string_view>

#include "core/coll/barrier/power_of_two_fold.hpp"
#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct RecursiveDoublingShmem {
    static constexpr std::string_view name = "recursive_doubling_shmem";
    static constexpr std::string_view summary = "pairwise exchange that polls before it puts: log2(n) round trips";

    static constexpr int slots(int n) { return PowerOfTwoFold::slots + 1 + ceil_log2(PowerOfTwoFold::base_size(n)); }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        return PowerOfTwoFold::run_with_fold(fabric, call, [&] { return exchange_all(fabric, call); });
    }

private:
    template <Fabric F>
    static Code exchange_all(F& fabric, const BarrierCall& call) {
        const int rounds = ceil_log2(PowerOfTwoFold::base_size(call.n));
        for (int round = 0; round < rounds; ++round) {
            const Code code = exchange(fabric, call, round, rounds);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }

    template <Fabric F>
    static Code exchange(F& fabric, const BarrierCall& call, int round, int rounds) {
        const int stage = call.first_slot + PowerOfTwoFold::slots;
        const int slot = stage + 1 + round;
        const int partner = call.index ^ (1 << round);
        const std::uint64_t here =
            call.generation * static_cast<std::uint64_t>(rounds) + static_cast<std::uint64_t>(round);
        Code code = fabric.signal(call.index, stage, here);
        if (code == Code::ok) code = fabric.wait({partner, stage, partner, round}, here);
        if (code == Code::ok) code = fabric.signal(partner, slot, call.generation);
        return code == Code::ok ? fabric.wait({call.index, slot, partner, round}, call.generation) : code;
    }
};

}  // namespace npushmem::barrier
