// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/barrier/signal_fabric.hpp"

#include <fmt/format.h>

namespace npushmem::barrier {

namespace {

WaitFor named(const BarrierIdentity& call, const AwaitedSlot& awaited) {
    if (awaited.from == any_member) return {.what = "the release", .needs = call.members};
    return {.what = "the signal", .needs = PeRange::one(call.members.at(awaited.from))};
}

}  // namespace

std::string describe(const BarrierIdentity& call, const FabricFailure& failure) {
    const std::string wait =
        npushmem::describe(named(call, failure.awaited), failure.wait, failure.expected, failure.seen);
    return fmt::format("barrier of team {} ({} PEs, algorithm {}, call {}) at PE {}, round {}: {}", call.team,
                       call.members.count, call.algorithm, failure.expected, call.members.at(call.index),
                       failure.awaited.round, wait);
}

}  // namespace npushmem::barrier
