// SPDX-License-Identifier: BSD-3-Clause
// Chooses the method of a collective call by its size and its group: the method that the group selects (Group::method),
// or the built-in choice that collectives.hpp states.
#pragma once

#include <cstdint>

#include "core/coll/group.hpp"
#include "core/coll/reduce_kernel.hpp"

namespace npushmem::coll {

// `has_ring`: the group's SmallBroadcast carries the bytes.
Method broadcast_method(const Group& group, std::uint64_t bytes, bool has_ring);

// A call, and what its methods can use.
struct Exchange {
    std::uint32_t collective;
    std::uint64_t bytes;
    bool has_lines;
    bool fits_workspace;
    bool has_hosts = false;
};

// Returns the selected method; without one, or if it does not serve the call, lines where they do, else the built-in
// method.
Method exchange_method(const Group& group, const Exchange& call, Method built_in);

// Returns whether published contributions of so many bytes are read faster than each member writes to all others.
bool prefers_published(const Group& group, std::uint64_t bytes);

// Return the built-in choice. `bytes` are those of each member.
Method built_in_fcollect(const Group& group, std::uint64_t bytes);
Method built_in_reduce(const Group& group, std::uint64_t count, const Reduction& how);

}  // namespace npushmem::coll
