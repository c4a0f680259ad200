// SPDX-License-Identifier: BSD-3-Clause
// The collectives of the bootstrap that a start performs (core/runtime/startup.cpp), in order. The unit test compares
// them with those of real starts: change both together.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace npushmem::simulate {

// A job without a library of collectives and without containers, whose PEs all map the PEs of their host. If it has
// several hosts, the first candidate of NPUSHMEM_REMOTE_ORDER serves them.
struct StartTraits {
    bool several_hosts = false;
    bool has_fabric = false;             // some host has a device of a fabric
    bool has_nics = false;               // the transport between hosts drives NICs; only with a fabric
    std::uint64_t endpoint_bytes = 144;  // addresses and memory handles of a PE, of all its transports

    // A job over `self` and `p2p`, and between hosts over `verbs` with one port.
    static StartTraits typical(bool several_hosts);
};

struct StartExchange {
    std::string_view what;
    std::uint64_t bytes;  // of each PE in an allgather; 0: a barrier
    bool is_kept;         // each PE keeps the result until its start ends
};

std::vector<StartExchange> start_exchanges(const StartTraits& traits);

}  // namespace npushmem::simulate
