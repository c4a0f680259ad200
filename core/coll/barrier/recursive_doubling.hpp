// SPDX-License-Identifier: BSD-3-Clause
// Recursive doubling: in round r every member exchanges signals with the member whose number differs in bit r; members
// beyond the largest power of two fold, see PowerOfTwoFold. p log2 p + 2(n - p) messages in log2 p rounds, p = that
// power.
//
// Slots: the fold's, then one per round and parity. A member that has left call g may signal call g+1 before its signal
// of call g has arrived, as in Dissemination.
#pragma once

#include <bit>
#include <string_view>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

// Extends schedules for powers of two to any n: each member beyond the largest power of two folds into a partner before
// the exchange, and the partner releases it afterwards.
//
// Slots: the folded member's arrival at its partner, and the release at the folded member. Each is written again only
// after a wait for the other, so no parity is needed.
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

// Recursive doubling by put and get: in each round a member polls its partner until it has reached the round, puts its
// own arrival there, and waits for the partner's. It takes three messages for each one of recursive_doubling: about 3 p
// log2 p, and log2 p round trips.
//
// Slots: the fold's; the stage, written by its own member only (call and round as one growing number); then one per
// round. No parity: a member puts into a round's slot only after it has seen the partner in that round, so the partner
// has waited for the put of the previous call.
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
