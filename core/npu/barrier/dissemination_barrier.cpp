// SPDX-License-Identifier: BSD-3-Clause
// Barrier v1, dissemination: each PE writes remote words and reads its own. In round r, member i signals member i +
// 2^r. One core does all signals and waits.
#include "core/npu/barrier/barrier_execution.hpp"

namespace npushmem::npu {
namespace {

void sync_members(Core& core, const barrier::Members& members, BarrierState* state, const SourceLocation& where) {
    const barrier::BarrierExecution execution(core, members, state, "barrier v1", 2, where);
    const int size = members.size();
    if (core.index() == 0) {
        std::size_t slot = 0;
        for (int shift = 1; shift < size; shift *= 2, ++slot) {
            execution.signal((execution.index() + shift) % size, slot);
            execution.await(execution.slot(slot), (execution.index() - shift + size) % size);
        }
        execution.complete();
    }
    execution.sync_cores();
}

}  // namespace

void sync_v1(Core& core, const TeamView& team, BarrierState* state, const SourceLocation& where) {
    sync_members(core, barrier::Members(team), state, where);
}

void barrier_v1(Core& core, const TeamView& team, BarrierState* state, const SourceLocation& where) {
    core.quiet(where);
    sync_v1(core, team, state, where);
}

void sync_partial(Core& core, std::span<const int> pes, BarrierState* state, const SourceLocation& where) {
    sync_members(core, barrier::Members(pes), state, where);
}

void barrier_partial(Core& core, std::span<const int> pes, BarrierState* state, const SourceLocation& where) {
    core.quiet(where);
    sync_partial(core, pes, state, where);
}

}  // namespace npushmem::npu
