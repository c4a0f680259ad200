// Two members, one exchange. One slot per parity: the first to leave a call may signal the next one before its signal
// of this one has landed.
#pragma once

#include <string_view>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

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

}  // namespace npushmem::barrier
