// Dissemination of radix k: in round r every member signals the k-1 members j * k^r further, j = 1 to k-1, and waits
// for the k-1 as far before. ceil(log_k n) rounds: with a network that takes several messages at once, radix 4 to 8 is
// the fastest there is; on shared cores it costs the most.
//
// Slots: one per round, j and parity, as in dissemination.hpp. The parities' halves lie as far apart as the largest
// radix needs, so that calls with different radices may follow each other.
#pragma once

#include <string_view>

#include "core/coll/barrier/turn.hpp"

namespace npushmem::barrier {

struct DisseminationK {
    static constexpr std::string_view name = "dissemination_k";
    static constexpr std::string_view summary = "dissemination of radix k (2 to 32): log_k(n) rounds of k-1 signals";
    static constexpr bool has_radix = true;

    static constexpr int slots(int n) { return 2 * slots_of_any_radix(n); }

    template <Fabric F>
    static Code run(F& fabric, const Turn& turn) {
        int slot = turn.first_slot + (turn.generation % 2 == 0 ? 0 : slots_of_any_radix(turn.n));
        int round = 0;
        for (std::int64_t reach = 1; reach < turn.n; reach *= turn.radix, ++round) {
            Code code = signal_all(fabric, turn, slot, reach);
            if (code == Code::ok) code = wait_for_all(fabric, turn, slot, reach, round);
            if (code != Code::ok) return code;
            slot += turn.radix - 1;
        }
        return Code::ok;
    }

private:
    template <Fabric F>
    static Code signal_all(F& fabric, const Turn& turn, int slot, std::int64_t reach) {
        for (int j = 1; j < turn.radix && j * reach < turn.n; ++j) {
            const int member = around(turn.n, turn.index, static_cast<int>(j * reach));
            const Code code = fabric.signal(member, slot + j - 1, turn.generation);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }

    template <Fabric F>
    static Code wait_for_all(F& fabric, const Turn& turn, int slot, std::int64_t reach, int round) {
        for (int j = 1; j < turn.radix && j * reach < turn.n; ++j) {
            const int from = around(turn.n, turn.index, -static_cast<int>(j * reach));
            const Code code = fabric.wait({turn.index, slot + j - 1, from, round}, turn.generation);
            if (code != Code::ok) return code;
        }
        return Code::ok;
    }
};

}  // namespace npushmem::barrier
