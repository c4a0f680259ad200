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

// Bruck's barrier: for d = 1, 2, 4, ... < n, signal the member d further and wait for the one d before. With one-sided
// signals that is dissemination, round for round; it is here under the name by which message-passing users select it.

struct Bruck {
    static constexpr std::string_view name = "bruck";
    static constexpr std::string_view summary = "as dissemination, under the name of Bruck's algorithm";

    static constexpr int slots(int n) { return Dissemination::slots(n); }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        return Dissemination::run(fabric, call);
    }
};

// Two members, one exchange. One slot per parity: the first to leave a call may signal the next one before its signal
// of this one has landed.

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

// Dissemination of radix k: in round r every member signals the k-1 members j * k^r further, j = 1 to k-1, and waits
// for the k-1 as far before. ceil(log_k n) rounds: with a network that takes several messages at once, radix 4 to 8 is
// the fastest there is; on shared cores it costs the most.
//
// Slots: one per round, j and parity, as in dissemination.hpp. The parities' halves lie as far apart as the largest
// radix needs, so that calls with different radices may follow each other.

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
