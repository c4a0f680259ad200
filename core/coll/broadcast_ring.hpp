// Small broadcasts that follow each other without a barrier: each member has a ring of cells in its own memory,
// into which it writes what it broadcasts as a root, once, and out of which the others read.
//
//     of each member, all zero at first:
//     | a FutexCounter: the last call that it has acknowledged | cells 0 .. depth - 1 |
//     a cell: 0..63 a FutexCounter whose value is the call's number, with the payload from byte 16 on; more lines of it
//
// Call k, whoever its root is, uses the root's cell k % depth. So the root writes over what it has sent `depth` calls
// ago or earlier, which all must have left. They say so in every `acknowledge_every`-th call only: whoever is waited
// for can reach call k - 1 without the root, and call k - depth is further back than the last one of those that are
// told. The root looks when its cells come round, and is up to `depth` calls ahead of the slowest.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/base/futex_counter.hpp"
#include "core/base/wait.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"

namespace npushmem::coll {

// One member's side; one thread at a time. All members map each other.
class BroadcastRing {
public:
    static constexpr int max_members = 64;  // a root that has come round looks at a line of each
    static constexpr std::uint64_t depth = 32;
    static constexpr std::uint64_t acknowledge_every = depth / 4;
    static constexpr std::uint64_t cell_bytes = 576;
    static constexpr std::uint64_t payload_offset = 16;
    static constexpr std::uint64_t max_payload = cell_bytes - payload_offset;
    static constexpr std::uint64_t bytes =
        FutexCounter::bytes + depth * cell_bytes;  // of each member, aligned to a line

    // `rings`: where each member's is. `oversubscribed`, the same at all members: more PEs than cores, so that who
    // waits sleeps and is woken. The waiter must outlive this. `timeout` 0: none.
    BroadcastRing(barrier::MemberStates rings, PeRange members, int index, bool oversubscribed, const Waiter& waiter,
                  std::chrono::nanoseconds timeout)
        : rings_(rings),
          members_(members),
          index_(index),
          oversubscribed_(oversubscribed),
          waiter_(&waiter),
          timeout_(timeout) {}

    // Collective. `count` bytes, at most `max_payload`, of the root's source to every member's dest, which may be null:
    // nowhere. On return the root has called it; the root itself waits for nobody who is less than `depth` calls
    // behind.
    Status run(const std::byte* source, std::byte* dest, std::uint64_t count, int root);

private:
    [[nodiscard]] std::byte* cell(int root, std::uint64_t call) const {
        return rings_.of(root) + FutexCounter::bytes + call % depth * cell_bytes;
    }
    [[nodiscard]] std::uint64_t last_acknowledged(int member) const;
    Status send(const std::byte* source, std::uint64_t count);
    Status receive(std::byte* dest, std::uint64_t count, int root);
    Status wait_until_acknowledged(std::uint64_t call);
    // Stores this call's number in the line and wakes the members that sleep on it.
    void publish(FutexCounter line);
    [[nodiscard]] bool has_arrived(int root) const;
    // Until the line's value is at least this.
    Status wait_for(FutexCounter line, std::uint64_t value, int member);

    barrier::MemberStates rings_;
    PeRange members_;
    int index_;
    bool oversubscribed_;
    const Waiter* waiter_;
    std::chrono::nanoseconds timeout_;
    std::uint64_t call_ = 0;
    std::uint64_t acknowledged_by_all_ = 0;  // the last call that every member is known to have left
};

}  // namespace npushmem::coll
