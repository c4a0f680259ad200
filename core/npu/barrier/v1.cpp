// Barrier v1: dissemination, write remote and read local. In round r the member i tells i + 2^r; one core does it all.
#include "core/npu/barrier/members.hpp"

namespace npushmem::npu {
namespace {

void sync_members(Core& core, const barrier::Members& members, BarrierState* state, const std::source_location& where) {
    const barrier::Round round(core, members, state, "barrier v1", 2, where);
    const int size = members.size();
    if (core.index() == 0) {
        std::size_t slot = 0;
        for (int shift = 1; shift < size; shift *= 2, ++slot) {
            round.signal((round.index() + shift) % size, slot);
            round.await(round.slot(slot), (round.index() - shift + size) % size);
        }
        round.complete();
    }
    round.meet();
}

}  // namespace

void sync_v1(Core& core, const TeamView& team, BarrierState* state, const std::source_location& where) {
    sync_members(core, barrier::Members(team), state, where);
}

void barrier_v1(Core& core, const TeamView& team, BarrierState* state, const std::source_location& where) {
    core.quiet(where);
    sync_v1(core, team, state, where);
}

void sync_partial(Core& core, std::span<const int> pes, BarrierState* state, const std::source_location& where) {
    sync_members(core, barrier::Members(pes), state, where);
}

void barrier_partial(Core& core, std::span<const int> pes, BarrierState* state, const std::source_location& where) {
    core.quiet(where);
    sync_partial(core, pes, state, where);
}

}  // namespace npushmem::npu
