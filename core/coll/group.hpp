// SPDX-License-Identifier: BSD-3-Clause
// The members of a collective algorithm: their indices, their memory, and a way to synchronise. The same algorithms run
// over mapped memory, over transports, and over threads of a unit test.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/coll/host_grid.hpp"
#include "core/coll/host_sync.hpp"
#include "core/coll/methods.hpp"
#include "core/coll/small_exchange.hpp"
#include "core/map/strided_blocks.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::coll {

class LibraryTeam;

// Scratch memory of each member for the algorithms: `Workspace::bytes` of symmetric memory, all zero at first.
struct Workspace {
    static constexpr std::uint64_t contribution_bytes = 2048;  // maximum that a member publishes
    static constexpr std::uint64_t bytes = 2 * contribution_bytes;
};

// Synchronises after the completion of this member's operations, also after it failed: the others wait for this member,
// and may not need the PE that it failed for. A timeout is the end of all waits. Returns the first failure.
template <class Sync>
Status sync_after(Status completed, Sync&& sync) {
    if (completed.code() == Code::timeout) return completed;
    Status synced = sync();
    return completed.ok() ? synced : completed;
}

// Offsets are of symmetric memory, equal on every member. One thread at a time.
class Group {
public:
    Group() = default;
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    virtual ~Group() = default;

    [[nodiscard]] virtual int size() const = 0;
    [[nodiscard]] virtual int index() const = 0;

    // Returns when all members have called it, by npushmem's own means. Each member's earlier stores and completed puts
    // are then visible to all.
    virtual Status sync() = 0;
    // Waits until the puts of this member have arrived.
    virtual Status complete() = 0;

    // Returns where a member's memory is mapped; null where it is not. The own one is always mapped.
    [[nodiscard]] virtual std::byte* mapped_address(int member, std::uint64_t offset) const = 0;
    // Returns whether every member maps every member's memory.
    [[nodiscard]] virtual bool all_mapped() const = 0;
    // Returns whether some host of the job has more PEs than cores, so that a barrier may take turns of the scheduler.
    // Equal on all members.
    [[nodiscard]] virtual bool is_oversubscribed() const { return false; }
    // For unmapped members. The source may be reused on return; the put arrives before complete() returns.
    virtual Status put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes) = 0;
    virtual Status get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) = 0;
    // Makes many puts.
    virtual Status put_blocks(int member, const StridedBlocks& blocks, const void* source) {
        Status done;
        for (std::uint64_t i = 0; i < blocks.count && done.ok(); ++i)
            done = put(member, blocks.offset + i * blocks.remote_stride,
                       static_cast<const std::byte*>(source) + i * blocks.local_stride, blocks.bytes);
        return done;
    }

    // Returns the members by host; null on one host, where hosts have different numbers of members, and where
    // some PE of the job does not map all PEs of its host. Null, or not, on all members.
    [[nodiscard]] virtual const HostGrid* host_grid() const { return nullptr; }
    // Returns what synchronises the members of several hosts faster than a barrier of all; null if there is none. Equal
    // on all members.
    [[nodiscard]] virtual HostSync* host_sync() const { return nullptr; }

    // Returns the exchange for small payloads, faster than a barrier and a read; null if there is none. Equal on all
    // members.
    [[nodiscard]] virtual SmallExchange* small_exchange() { return nullptr; }
    // The same for small broadcasts.
    [[nodiscard]] virtual SmallBroadcast* small_broadcast() { return nullptr; }

    // Returns the method that a rule or the program has selected for calls of `bytes` per member. Equal on all members.
    [[nodiscard]] virtual Method method(std::uint32_t /*collective*/, std::uint64_t /*bytes*/) const {
        return Method::automatic;
    }

    // Returns the counterpart of this group in another library of collectives; null if there is none. Equal on all
    // members.
    [[nodiscard]] virtual LibraryTeam* library() { return nullptr; }

    // Returns the workspace's offset.
    [[nodiscard]] virtual std::uint64_t workspace() const = 0;
    // Returns the half of every workspace that this call may write: 0 and 1 alternately. Between two uses of one half,
    // every member has entered the other use, after it has read the first.
    virtual unsigned next_workspace_half() = 0;
    // Numbers the reductions by sums of hosts, from 1 on. Equal on all members.
    virtual std::uint64_t next_host_sums() { return ++host_sums_; }

private:
    std::uint64_t host_sums_ = 0;
};

}  // namespace npushmem::coll
