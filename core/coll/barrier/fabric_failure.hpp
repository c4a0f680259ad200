// Why a fabric's wait ended without its signal, and the sentence about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/wait.hpp"
#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct FabricFailure {
    AwaitedSlot awaited;
    std::uint64_t expected = 0;
    std::uint64_t seen = 0;
    WaitFailure wait;
};

// Which barrier it was.
struct BarrierIdentity {
    std::string_view team;  // "world"
    std::string_view algorithm;
    PeRange members;  // world PEs by team index
    int index = 0;    // of the caller
};

// "barrier of team world (4 PEs, algorithm tree, call 7) at PE 2, round 1: waited 0.500 s for the signal of PE 3: ..."
std::string describe(const BarrierIdentity& call, const FabricFailure& failure);

}  // namespace npushmem::barrier
