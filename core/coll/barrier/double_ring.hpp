// SPDX-License-Identifier: BSD-3-Clause
// A token circulates twice, 0 -> 1 -> ... -> n-1 -> 0: the first round gathers, the second releases. 2n messages in
// sequence; never fast, but only one message at a time in the network.
//
// One slot: the rounds of call g write 2g - 1 and 2g. The second token starts only when the first has returned, and
// member 0 starts the next call only when its second token has returned, so one slot never has two tokens in flight.
#pragma once

#include <string_view>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct DoubleRing {
    static constexpr std::string_view name = "double_ring";
    static constexpr std::string_view summary = "a token twice round the ring: 2n hops, one message at a time";

    static constexpr int slots(int /*n*/) { return 1; }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        Code code = pass(fabric, call, 0);
        if (code == Code::ok) code = pass(fabric, call, 1);
        return code;
    }

private:
    // Member 0 sends the token and waits for its return, in both rounds; the others pass it on.
    template <Fabric F>
    static Code pass(F& fabric, const BarrierCall& call, int round) {
        const std::uint64_t token = 2 * call.generation - 1 + static_cast<std::uint64_t>(round);
        const int right = wrapped_index(call.n, call.index, 1);
        const AwaitedSlot left{call.index, call.first_slot, wrapped_index(call.n, call.index, -1), round};
        if (call.index == 0) {
            const Code code = fabric.signal(right, call.first_slot, token);
            return code == Code::ok ? fabric.wait(left, token) : code;
        }
        const Code code = fabric.wait(left, token);
        return code == Code::ok ? fabric.signal(right, call.first_slot, token) : code;
    }
};

}  // namespace npushmem::barrier
