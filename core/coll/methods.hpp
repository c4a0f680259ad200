// SPDX-License-Identifier: BSD-3-Clause
// npushmem's methods for each collective, by which a tuning file, a team or the built-in choice runs a call.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "npushmem/plugin/collectives.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem::coll {

enum class Method : std::uint8_t {
    automatic,   // the built-in choice, by size and mapping
    lines,       // payloads that arrive with their signals, without a barrier: SmallExchange
    ring,        // the same from the root alone: SmallBroadcast
    push,        // members write to the others' dest; then a barrier
    pull,        // a barrier; members read the others' source; a barrier
    scatter,     // as pull, but each member reads its part from the root, and the other parts from the other members
    hosts,       // as push or partitioned, but bytes for all members of a host cross the network once: host_grid()
    published,   // members copy their arrays to workspaces; a barrier; each reads or combines all
    partitioned  // a barrier; each member combines its part of all arrays and writes it to all; a barrier
};

inline constexpr std::uint32_t collective_count = NPUSHMEM_COLL_REDUCESCATTER + 1;

// By number, as in the tuning file.
inline constexpr std::array<std::string_view, collective_count> collective_names{
    "barrier", "broadcast", "collect", "fcollect", "alltoall", "reduce", "reducescatter"};
std::string_view name_of(Method method);

// The methods of a collective, without `automatic`; none for barriers, whose algorithms are in coll/barrier. A method
// that does not serve a call, for its size or because the team's memory is not mapped, leaves it to the built-in
// choice.
std::span<const Method> methods_of(std::uint32_t collective);
// Fail with Code::argument, and the names that exist: for the collective, or for any.
Result<Method> method_named(std::uint32_t collective, std::string_view name);
Result<Method> method_named(std::string_view name);

}  // namespace npushmem::coll
