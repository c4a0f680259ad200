// What a collective algorithm needs of the PEs that take part: their numbers, their memory, and a way to synchronise.
// The same algorithms run over mapped memory, over transports, and over threads of a unit test.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/blocks.hpp"
#include "core/coll/cache_line_exchange.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::coll {

// Room of each member for the algorithms' own use: `Workspace::bytes` of symmetric memory, all zero at first.
struct Workspace {
    static constexpr std::uint64_t contribution_bytes = 2048;  // most that a member publishes of its own
    static constexpr std::uint64_t bytes = 2 * contribution_bytes;
};

// Offsets are of symmetric memory, the same at every member. One thread at a time.
class Group {
public:
    Group() = default;
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    virtual ~Group() = default;

    [[nodiscard]] virtual int size() const = 0;
    [[nodiscard]] virtual int index() const = 0;

    // Returns when all members have called it: what each wrote before by loads, stores and completed puts is visible.
    virtual Status sync() = 0;
    // The puts of this member have landed.
    virtual Status complete() = 0;

    // Where the CPU finds a member's memory; null when it does not. The own one is always found.
    [[nodiscard]] virtual std::byte* mapped_address(int member, std::uint64_t offset) const = 0;
    // Every member's memory is found by every member.
    [[nodiscard]] virtual bool all_mapped() const = 0;
    // For those that are not found. The source may be reused on return; the put has landed after complete().
    virtual Status put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes) = 0;
    virtual Status get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) = 0;
    // Many puts at once.
    virtual Status put_blocks(int member, const StridedBlocks& blocks, const void* source) {
        Status done;
        for (std::uint64_t i = 0; i < blocks.count && done.ok(); ++i)
            done = put(member, blocks.offset + i * blocks.remote_stride,
                       static_cast<const std::byte*>(source) + i * blocks.local_stride, blocks.bytes);
        return done;
    }

    // A way for a few bytes that is faster than a barrier and a read; null where there is none. The same at every
    // member.
    [[nodiscard]] virtual CacheLineExchange* line_exchange() { return nullptr; }
    // The same for small broadcasts.
    [[nodiscard]] virtual BroadcastRing* broadcast_ring() { return nullptr; }

    // The workspace's offset.
    [[nodiscard]] virtual std::uint64_t workspace() const = 0;
    // Half of the workspace that this call may write: 0 and 1 in turn. Between two uses of one half lies a sync of the
    // use of the other, which every member enters only after it has read what was there.
    virtual unsigned next_workspace_half() = 0;
};

}  // namespace npushmem::coll
