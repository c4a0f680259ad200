// The basic barrier of message-passing collectives: linear, with one-sided signals in the place of sends and receives,
// which leaves nothing to tell it from `linear` but the name that users know.
#pragma once

#include <string_view>

#include "core/coll/barrier/linear.hpp"

namespace npushmem::barrier {

struct Basic {
    static constexpr std::string_view name = "basic";
    static constexpr std::string_view summary = "as linear, under the name of the basic collectives";

    static constexpr int slots(int n) { return Linear::slots(n); }

    template <Fabric F>
    static Code run(F& fabric, const BarrierCall& call) {
        return Linear::run(fabric, call);
    }
};

}  // namespace npushmem::barrier
