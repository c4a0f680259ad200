// Barrier v3: write local, read remote.
#include <fmt/format.h>

#include <algorithm>

#include "npushmem/npu/barrier.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::npu {
namespace {

[[noreturn]] void refuse(const TeamView& team, int pe, const std::source_location& where) {
    throw KernelError(Code::argument,
                      fmt::format("barrier: PE {} is no member of the team of {} PEs from {} by {} ({}:{})", pe,
                                  team.size, team.start, team.stride, where.file_name(), where.line()));
}

// Core c of `pollers` looks at the members c, c + pollers, ...; every one must have arrived at `generation`.
void poll_members(Core& core, const TeamView& team, int mine, const BarrierState* state, std::uint64_t generation,
                  const std::source_location& where) {
    const int pollers = std::min({barrier_v3_pollers, core.count(), team.size});
    if (core.index() >= pollers) return;
    for (int i = core.index(); i < team.size; i += pollers) {
        if (i == mine) continue;
        const int pe = team.pe(i);
        core.signal_wait_until(&core.remote(state, pe, where)->arrival.word, Compare::greater_equal, generation, pe,
                               where);
    }
}

}  // namespace

void sync_v3(Core& core, const TeamView& team, BarrierState* state, const std::source_location& where) {
    const int mine = team.index_of(core.my_pe());
    if (mine < 0) refuse(team, core.my_pe(), where);
    // Before any core can pass the barrier below, because core 0 writes the generation after it.
    const std::uint64_t generation = core.load(&state->generation.word, where) + 1;
    core.core_barrier(where);
    if (core.index() == 0) {
        core.signal_set(&state->arrival.word, generation, where);
        core.store(&state->generation.word, generation, where);
    }
    poll_members(core, team, mine, state, generation, where);
    // Without this one, a core whose members have all arrived would leave before those of another core have.
    core.core_barrier(where);
}

void barrier_v3(Core& core, const TeamView& team, BarrierState* state, const std::source_location& where) {
    core.quiet(where);
    sync_v3(core, team, state, where);
}

Status barrier_on_device(Stream& stream, const TeamView& team, BarrierState* state) {
    LaunchConfig config(1);
    config.name = "barrier_v3";
    return launch(stream, config, [team, state](Core& core) { barrier_v3(core, team, state); });
}

}  // namespace npushmem::npu
