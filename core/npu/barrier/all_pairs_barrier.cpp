// SPDX-License-Identifier: BSD-3-Clause
// Barrier v3, all pairs: each PE writes its own arrival word and reads those of all others.
#include <algorithm>

#include "core/npu/barrier/barrier_execution.hpp"

namespace npushmem::npu {

void sync_v3(Core& core, const TeamView& team, BarrierState* state, const SourceLocation& where) {
    const barrier::Members members(team);
    const barrier::BarrierExecution execution(core, members, state, "barrier v3", 0, where);
    if (core.index() == 0) {
        core.signal_set(&state->arrival.word, execution.generation(), where);
        execution.complete();
    }
    // Core c of `pollers` reads the members c, c + pollers, ...
    const int pollers = std::min({barrier_v3_pollers, core.count(), team.size});
    for (int i = core.index(); i < team.size && core.index() < pollers; i += pollers) {
        if (i != execution.index()) execution.await_remote(&state->arrival.word, i);
    }
    // Without this core barrier, a core whose members have all arrived would leave before the members of another core
    // have arrived.
    execution.sync_cores();
}

void barrier_v3(Core& core, const TeamView& team, BarrierState* state, const SourceLocation& where) {
    core.quiet(where);
    sync_v3(core, team, state, where);
}

}  // namespace npushmem::npu
