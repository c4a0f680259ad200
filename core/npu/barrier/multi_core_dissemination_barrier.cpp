// SPDX-License-Identifier: BSD-3-Clause
// Barrier v2, dissemination of radix k on all cores. In each round, member i signals member i + j * shift for j = 1 to
// k - 1; the cores share the values of j. Then shift is multiplied by k.
#include <fmt/format.h>

#include "core/npu/barrier/barrier_execution.hpp"
#include "core/npu/source_line.hpp"

namespace npushmem::npu {

void sync_v2(Core& core, const TeamView& team, BarrierState* state, int radix, const SourceLocation& where) {
    if (radix < 2 || radix > barrier_v2_max_radix) {
        throw KernelError(Code::range, fmt::format("barrier v2: radix {} must be 2 to {} ({})", radix,
                                                   barrier_v2_max_radix, text_of(where)));
    }
    const barrier::Members members(team);
    const barrier::BarrierExecution execution(core, members, state, "barrier v2", radix, where);
    const int size = members.size();
    std::size_t first_slot = 0;
    for (std::int64_t shift = 1; shift < size; shift *= radix, first_slot += static_cast<std::size_t>(radix - 1)) {
        const auto peer = [&](int j, int sign) {
            return static_cast<int>((execution.index() + sign * j * shift + size) % size);
        };
        const auto in_round = [&](int j) { return j < radix && j * shift < size; };
        for (int j = 1 + core.index(); in_round(j); j += core.count()) {
            execution.signal(peer(j, 1), first_slot + static_cast<std::size_t>(j - 1));
        }
        for (int j = 1 + core.index(); in_round(j); j += core.count()) {
            execution.await(execution.slot(first_slot + static_cast<std::size_t>(j - 1)), peer(j, -1));
        }
        // In the next round each core's signals must cover the signals that all cores have received. Without this core
        // barrier, a core would pass on only those for its own j, and the barrier would be incorrect.
        if (shift * radix < size) execution.sync_cores();
    }
    if (core.index() == 0) execution.complete();
    execution.sync_cores();
}

void barrier_v2(Core& core, const TeamView& team, BarrierState* state, int radix, const SourceLocation& where) {
    core.quiet(where);
    sync_v2(core, team, state, radix, where);
}

}  // namespace npushmem::npu
