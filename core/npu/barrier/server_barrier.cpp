// Barrier across servers: a barrier within each server, one among one PE of each, and again one within each server.
#include <fmt/format.h>

#include "core/npu/barrier/barrier_execution.hpp"
#include "core/npu/source_line.hpp"

namespace npushmem::npu {

void sync_servers(Core& core, const TeamView& team, int per_server, ServerBarrierState* state,
                  const std::source_location& where) {
    if (per_server < 1 || team.size % per_server != 0) {
        throw KernelError(Code::argument, fmt::format("barrier across servers: {} PEs are not whole servers of {} ({})",
                                                      team.size, per_server, text_of(where)));
    }
    const int mine = team.index_of(core.my_pe());
    if (mine < 0) {
        throw KernelError(Code::argument,
                          fmt::format("barrier across servers: PE {} is no member ({})", core.my_pe(), text_of(where)));
    }
    const int leader = mine - mine % per_server;
    const TeamView server{team.pe(leader), team.stride, per_server};
    const TeamView leaders{team.start, team.stride * per_server, team.size / per_server};
    sync_v3(core, server, &state->server, where);
    if (mine == leader) sync_v1(core, leaders, &state->leaders, where);
    // The others wait here for their leader.
    sync_v3(core, server, &state->server, where);
}

void barrier_servers(Core& core, const TeamView& team, int per_server, ServerBarrierState* state,
                     const std::source_location& where) {
    core.quiet(where);
    sync_servers(core, team, per_server, state, where);
}

}  // namespace npushmem::npu
