// SPDX-License-Identifier: BSD-3-Clause
// Collective operations over a group. Every member calls the same function with equal arguments (exceptions are
// stated), and gets the same Status unless a peer or a transport failed. `dest` and `source` are offsets of symmetric
// memory.
//
// All operations minimise barriers, because with more PEs than cores a barrier costs more than the bytes. Writing into
// the others' dest, which is ready by contract, needs one barrier; reading from their source needs one before and one
// after. Group::method may select another method than the built-in one by size, which each function states; `hosts` is
// for groups with a HostGrid. In groups with a HostSync, messages with signals take the place of barriers. In groups
// with a SmallExchange, payloads that it carries use it and need no barrier; so do broadcasts in groups with a
// SmallBroadcast. All but scans and strided exchanges are left to another library where the group has one that serves
// the call.
#pragma once

#include <span>

#include "core/coll/group.hpp"
#include "core/coll/reduce_kernel.hpp"

namespace npushmem::coll {

// Gathers `bytes` bytes, at most Workspace::contribution_bytes, of every member, in their order. They
// travel by the group's SmallExchange if it carries them, otherwise through the members' workspaces.
Status gather_small(Group& group, const void* mine, std::uint64_t bytes, void* all);

// Small: push. Large: pull; over transports, the largest scatter. Hosts if there is a HostSync, or it saves the root
// many messages or bytes. `to_root`: also writes the root's dest.
Status broadcast(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root, bool to_root);

// `bytes` may differ between members, which exchange it first. Fails with Code::range on all members when the sum
// exceeds `room`, the bytes from dest to the end of its object. Push; published if more than 8 members map each other
// and none has more than 512 bytes.
Status collect(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, std::uint64_t room);
// Push; published as in collect. Hosts if there is a HostSync, or it saves each member many messages or bytes.
Status fcollect(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes);
// Sends `bytes` to each member. Push; published if more than 8 members map each other and each sends at most 512 bytes
// in all.
Status alltoall(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes);

// `count` elements of `size` bytes for each member, `dst` and `sst` elements apart.
struct Strides {
    std::uint64_t dst;
    std::uint64_t sst;
    std::uint64_t count;
    std::uint64_t size;
};
Status alltoalls(Group& group, std::uint64_t dest, std::uint64_t source, const Strides& strides);

// Where this member has the block that comes from, or goes to, one member.
struct Block {
    std::uint64_t offset;  // in symmetric memory, if there are bytes
    std::uint64_t bytes;
};
// Sends source[m] to each member m, which receives it in its dest[me]. The blocks of a member are its own; members
// first exchange where theirs are. Fails with Code::mismatch on both members of a pair whose sizes differ; all other
// blocks are sent then.
Status alltoallv(Group& group, std::span<const Block> dest, std::span<const Block> source);

// Gives the same bits on every member: combines operands in the members' order, or by `hosts` those of each host and
// then the hosts; f16 and bf16 always in the members' order in float, rounded once. A NaN among the operands of max and
// min is their result. dest may be source. Hosts if there is a HostGrid, but without a HostSync not for 1 to 2 KiB on
// few hosts. Otherwise small: published. Over mapped memory from 512 bytes on, where members have cores of their own,
// and over transports for more than Workspace::contribution_bytes: partitioned.
Status reduce(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count, ReduceOperation operation,
              ReduceElement element);
// Combines this member's block of `count` elements of every source, which has one block for each member, in the
// members' order. dest may be source; then it fails with Code::memory on all members if one cannot hold its block. Each
// member reads from all others.
Status reduce_scatter(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count,
                      ReduceOperation operation, ReduceElement element);
// Sums over the members up to this one, or before it. dest may be source.
Status scan(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count, bool inclusive,
            ReduceElement element);

}  // namespace npushmem::coll
