// Bruck's barrier: for d = 1, 2, 4, ... < n, signal the member d further and wait for the one d before. With one-sided
// signals that is dissemination, round for round; it is here under the name by which message-passing users select it.
#pragma once

#include <string_view>

#include "core/coll/barrier/dissemination.hpp"

namespace npushmem::barrier {

struct Bruck {
    static constexpr std::string_view name = "bruck";
    static constexpr std::string_view summary = "as dissemination, under the name of Bruck's algorithm";

    static constexpr int slots(int n) { return Dissemination::slots(n); }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        return Dissemination::run(fabric, call);
    }
};

}  // namespace npushmem::barrier
