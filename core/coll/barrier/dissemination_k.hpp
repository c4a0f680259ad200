// Dissemination of radix k: in round r every member signals the k-1 members j * k^r further, j = 1 to k-1, and waits
// for the k-1 as far before. ceil(log_k n) rounds: with a network that takes several messages at once, radix 4 to 8 is
// the fastest there is; on shared cores it costs the most.
//
// Slots: one per round, j and parity, as in dissemination.hpp. The parities' halves lie as far apart as the largest
// radix needs, so that calls with different radices may follow each other.
#pragma once

#include <string_view>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

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
