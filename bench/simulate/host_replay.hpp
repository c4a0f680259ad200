// SPDX-License-Identifier: BSD-3-Clause
// The time of a collective call of members on up to 128 hosts, which synchronise by messages with signals
// (coll::HostSync). Every member runs npushmem's own code once, without time, and records its steps; then an event
// simulation runs the steps of all members under the LogGP model.
//
// A member sends and receives one message at a time, each for the gap and its bytes; it receives them in the order in
// which their sends end. Reads and puts without a signal do not occupy the other member. Stores to the memory of a host
// take no time, reads the latency and the overhead; combining operands takes none. Each member has a core of its own.
// The call is the first one of its team.
#pragma once

#include <functional>
#include <optional>

#include "bench/simulate/collective_cost.hpp"
#include "core/coll/group.hpp"

namespace npushmem::simulate {

// Whether the members of the team have a HostSync, and are few enough to record all of them.
bool has_host_sync(const Team& team);

// `call` runs the collective for one member. `barrier`: the nanoseconds of a barrier of the team. Empty if the call
// sends no message with a signal: it synchronises by barriers alone.
Result<std::optional<CollectiveCost>> replay(const CollectiveCall& what,
                                             const std::function<Status(coll::Group&)>& call, const Team& team,
                                             const Model& model, double barrier);

}  // namespace npushmem::simulate
