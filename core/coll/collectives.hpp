// The collective operations over a group. Every member calls the same function with equal arguments (but where said),
// and gets the same Status unless a peer or a transport failed. `dest` and `source` are offsets of symmetric memory.
//
// All of them use as few barriers as they can, because with more PEs than cores a barrier costs more than the bytes:
// writing into the others' dest, which is ready by contract, needs one barrier; reading from their source needs two,
// one before and one after. Which way a size goes is said at each function. Up to CacheLineExchange::max_payload bytes
// from member to member travel, in groups that have lines, in the lines that say that they have come, and there is no
// barrier; so do broadcasts of up to BroadcastRing::max_payload bytes in groups that have rings.
#pragma once

#include "core/coll/group.hpp"
#include "core/coll/reduce_kernel.hpp"

namespace npushmem::coll {

// Small: the root writes to all. Large: all read from the root at the same time. Large over transports: each member
// reads its part from the root, and the parts of the others from them. `to_root`: the root's dest is written as well.
Status broadcast(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, int root, bool to_root);

// `bytes` may differ from member to member: the members tell each other first. Code::range, at all of them, when they
// are together more than `room`, the bytes from dest to the end of what may be written.
Status collect(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes, std::uint64_t room);
Status fcollect(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes);
// `bytes` for each member.
Status alltoall(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t bytes);

// Elements of `size` bytes, `count` for each member, `dst` and `sst` elements apart.
struct Strides {
    std::uint64_t dst;
    std::uint64_t sst;
    std::uint64_t count;
    std::uint64_t size;
};
Status alltoalls(Group& group, std::uint64_t dest, std::uint64_t source, const Strides& strides);

// The same bits on every member: operands are combined in the members' order. dest may be source.
// Small: everybody publishes its array in its workspace and combines all. Large: each combines one part of all arrays
// and writes the result to all.
Status reduce(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count, ReduceOperation operation,
              ReduceElement element);
// Sums of the members up to this one, or of those before it. dest may be source.
Status scan(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count, bool inclusive,
            ReduceElement element);

}  // namespace npushmem::coll
