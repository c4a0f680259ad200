// SPDX-License-Identifier: BSD-3-Clause
// Dissemination: in round r every member signals the member 2^r after it and waits for the member 2^r before it. After
// ceil(log2 n) rounds, of n messages each, every member knows of all arrivals. The fastest barrier when every PE has a
// core; with fewer cores each round costs each PE a context switch.
//
// Slots: one per round and parity. A member that has left call g may signal call g+1 before its signal of call g has
// arrived. It can signal call g+2 only after the receiver has entered g+1, so two parities suffice.
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

// Bruck's barrier: for d = 1, 2, 4, ... < n, signal the member d after and wait for the member d before. With one-sided
// signals it equals dissemination, round by round; message-passing users select it by this name.
struct Bruck {
    static constexpr std::string_view name = "bruck";
    static constexpr std::string_view summary = "as dissemination, under the name of Bruck's algorithm";

    static constexpr int slots(int n) { return Dissemination::slots(n); }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        return Dissemination::run(fabric, call);
    }
};

// Two members, one exchange. One slot per parity: the first member to leave a call may signal the next one before its
// signal of this call has arrived.
struct TwoProc {
    static constexpr std::string_view name = "two_proc";
    static constexpr std::string_view summary = "one exchange between two members";
    static constexpr int max_members = 2;

    static constexpr int slots(int /*n*/) { return 2; }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        const int other = 1 - call.index;
        const int slot = call.first_slot + static_cast<int>(call.generation % 2);
        const Code code = fabric.signal(other, slot, call.generation);
        return code == Code::ok ? fabric.wait({call.index, slot, other, 0}, call.generation) : code;
    }
};

// Dissemination of radix k: in round r every member signals the k-1 members j * k^r after it, j = 1 to k-1, and waits
// for the k-1 members as far before it. ceil(log_k n) rounds. The fastest barrier, with radix 4 to 8, on a network that
// accepts several messages at once; the most expensive one on shared cores.
//
// Slots: one per round, j and parity, as for Dissemination. The distance of the parities' halves suits the largest
// radix, so that calls with different radices may follow each other.
struct DisseminationK {
    static constexpr std::string_view name = "dissemination_k";
    static constexpr std::string_view summary = "dissemination of radix k (2 to 32): log_k(n) rounds of k-1 signals";
    static constexpr bool has_radix = true;

    static constexpr int slots(int n) { return 2 * slots_of_any_radix(n); }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        int slot = call.first_slot + (call.generation % 2 == 0 ? 0 : slots_of_any_radix(call.n));
        int round = 0;
        for (std::int64_t reach = 1; reach < call.n; reach *= call.radix, ++round) {
            Code code = signal_all(fabric, call, slot, reach);
            if (code == Code::ok) code = wait_for_all(fabric, call, slot, reach, round);
            if (code != Code::ok) return code;
            slot += call.radix - 1;
        }
        return Code::ok;
    }

private:
    template <Fabric F>
    static Code signal_all(F& fabric, const BarrierCall& call, int slot, std::int64_t reach) {
        for (int j = 1; j < call.radix && j * reach < call.n; ++j) {
            const int member = wrapped_index(call.n, call.index, static_cast<int>(j * reach));
            const Code code = fabric.signal(member, slot + j - 1, call.generation);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }

    template <Fabric F>
    static Code wait_for_all(F& fabric, const BarrierCall& call, int slot, std::int64_t reach, int round) {
        for (int j = 1; j < call.radix && j * reach < call.n; ++j) {
            const int from = wrapped_index(call.n, call.index, -static_cast<int>(j * reach));
            const Code code = fabric.wait({call.index, slot + j - 1, from, round}, call.generation);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }
};

}  // namespace npushmem::barrier
