// SPDX-License-Identifier: BSD-3-Clause
// Collectives of groups on several hosts, by the method `hosts`: the bytes that a host needs cross the network once,
// not once for each of its members. Every member is the leader of its host for one part of the array, so that a host
// uses the NICs of all its members at a time; a host divides and assembles the array in mapped memory.
//
// Messages between hosts carry the signals of their arrival, and the members of a host wait for each other, if the
// group has a HostSync; otherwise barriers of all members take the place of both.
//
// Each function needs group.host_grid() and takes the arguments of its namesake in collectives.hpp.
#pragma once

#include "core/coll/group.hpp"
#include "core/coll/reduce_kernel.hpp"

namespace npushmem::coll {

// Up to 36 KiB to 96 KiB, by the number of hosts, the root sends the array to one member of each other host, and the
// others copy it there: 1 message, or 2 barriers. More bytes go by parts.
Status broadcast_by_hosts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                          bool to_root);
// The members of the root's host divide the array. Each sends its part to one other host, or a share of it to each of
// several, which then exchange their shares: 1 or 2 messages one after another, or 3 or 4 barriers.
Status broadcast_by_parts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root,
                          bool to_root);

// 1 message, or 2 barriers.
Status fcollect_by_hosts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes);

// Returns whether reduce_by_hosts serves the reduction: not where accumulators differ from elements, as they are not
// rounded between hosts.
bool reduces_by_hosts(const Reduction& how);

// Combines the members of each host in their order, then the hosts in theirs. dest may be source. If the sums of all
// hosts fit into a workspace, they travel through it: 1 message, or 2 barriers. Otherwise by parts.
bool fits_sums_of_hosts(const Group& group, std::uint64_t count, const Reduction& how);
Status reduce_by_hosts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                       const Reduction& how);
// Each member combines one part of its host's arrays, and exchanges it with its peers on other hosts. Up to 32 KiB, and
// on two hosts, a member sends its whole part, if there is room in the peers' dest: 2 messages one after another.
// Otherwise each combines a share of the part: 3 messages, or without room 2 and a read. Without a HostSync 4 to 5
// barriers.
Status reduce_by_parts(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                       const Reduction& how);

}  // namespace npushmem::coll
