// SPDX-License-Identifier: BSD-3-Clause
// Chooses the method of a collective call by its size and its group: the method that the group selects (Group::method),
// or the built-in choice that collectives.hpp states.
#pragma once

#include <cstdint>

#include "core/coll/group.hpp"
#include "core/coll/reduce_kernel.hpp"

namespace npushmem::coll {

// `bytes` are those of each member, or for each member. `has_ring` and `has_lines`: the group's SmallBroadcast or
// SmallExchange carries them.
Method broadcast_method(const Group& group, std::uint64_t bytes, bool has_ring);
Method fcollect_method(const Group& group, std::uint64_t bytes, bool has_lines);
Method alltoall_method(const Group& group, std::uint64_t bytes, bool has_lines);
Method reduce_method(const Group& group, std::uint64_t count, const Reduction& how, bool has_lines);
Method reduce_scatter_method(const Group& group, std::uint64_t bytes, bool has_lines);

// Returns whether published contributions of so many bytes are read faster than each member writes to all others.
bool prefers_published(const Group& group, std::uint64_t bytes);

}  // namespace npushmem::coll
