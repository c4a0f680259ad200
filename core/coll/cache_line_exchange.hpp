// SPDX-License-Identifier: BSD-3-Clause
// Small collective operations over mapped memory. Cache lines carry the payload together with the signal of its
// arrival, so an operation takes one transfer between two caches and no separate barrier.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/base/parking.hpp"
#include "core/base/wait.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"

namespace npushmem::coll {

// Waits on a line that a member stores to, until `ready()`, which loads the line with acquire. `parks`: the writer
// wakes sleepers, so this may sleep until then. `pe`: the writer, for the message.
template <class Ready>
[[gnu::noinline]] Status wait_at_line(const Waiter& waiter, FutexCounter line, Ready&& ready, WaitFor what, bool parks,
                                      int pe) {
    // Polls before anything else: longer than a line takes between caches, shorter than a switch to another thread.
    constexpr int first_polls = 200;
    for (int i = 0; i < first_polls && waiter.budget().polls != 0; ++i)
        if (ready()) return {};
    FutexParking parking{line};
    what.parking = parks ? &parking : nullptr;
    WaitFailure failure;
    const Code code = waiter.until(ready, what, &failure);
    if (parking.woken() != 0) waiter.count_woken(parking.woken());
    if (code == Code::ok) return {};
    return {code, fmt::format("{}; received nothing from PE {}", describe(what, failure), pe)};
}

// Exchanges a few bytes between all members. For one member; one thread at a time. All members map each other.
//
//     of each member, all zero at first: a ring of `depth` turns of one cell for each sender
//     | turn 0: cell of member 0 | cell of member 1 | ... | turn 1: cell of member 0 | ...
//     a cell: 0..63 a FutexCounter whose value is the call's number, with the payload from byte 16 on; 64..127 more of
//     it
//
// In every call each member sends to every other and returns when all payloads have arrived. Call k uses turn k % 2, so
// a sender overwrites its payload of call k - 2. This is safe: it has seen the receiver's payload of call k - 1, and a
// receiver reads a cell before its next call.
class CacheLineExchange {
public:
    static constexpr int max_members = 8;  // above, all-to-all writes cost more than a barrier
    static constexpr std::uint64_t depth = 2;
    static constexpr std::uint64_t cell_bytes = 128;
    static constexpr std::uint64_t payload_offset = 16;
    static constexpr std::uint64_t max_payload = cell_bytes - payload_offset;
    static constexpr std::uint64_t bytes = depth * max_members * cell_bytes;  // of each member, aligned to a line

    // `cells` locates each member's cells. The waiter must outlive this. `timeout` 0: none.
    CacheLineExchange(barrier::MemberStates cells, PeRange members, int index, const Waiter& waiter,
                      std::chrono::nanoseconds timeout)
        : cells_(cells), members_(members), index_(index), waiter_(&waiter), timeout_(timeout) {}

    // Collective. Sends `count` bytes, at most `max_payload`, from source + member * step to each member. On return all
    // members have called it, and their earlier writes are visible.
    Status run(const std::byte* source, std::uint64_t step, std::uint64_t count);

    // Returns the payload of a member's last call: aligned to 16 bytes, valid until this member's next call.
    [[nodiscard]] const std::byte* of(int member) const { return cell(index_, member, call_) + payload_offset; }

private:
    [[nodiscard]] std::byte* cell(int receiver, int sender, std::uint64_t call) const {
        return cells_.of(receiver) + (call % depth * max_members + static_cast<std::size_t>(sender)) * cell_bytes;
    }
    // Returns the i-th member after this one.
    [[nodiscard]] int member_after(int i) const {
        return index_ + i < members_.count ? index_ + i : index_ + i - members_.count;
    }
    void send(int member, const std::byte* payload, std::uint64_t count);
    void send_to_all(const std::byte* source, std::uint64_t step, std::uint64_t count);
    [[nodiscard]] bool has_arrived(int member) const;
    void wake_sleepers_of_all();
    Status wait_for(int member);

    barrier::MemberStates cells_;
    PeRange members_;
    int index_;
    const Waiter* waiter_;
    std::chrono::nanoseconds timeout_;
    std::uint64_t call_ = 0;
    bool sleepers_woken_ = false;  // sleepers of this call
};

// Small broadcasts without a barrier in between. Each member has a ring of cells in its own memory. As a root, it
// writes its payload there once, and the others read it. For one member; one thread at a time. All members map each
// other.
//
//     of each member, all zero at first:
//     | a FutexCounter: the last call that it has acknowledged | cells 0 .. depth - 1 |
//     a cell: 0..63 a FutexCounter whose value is the call's number, with the payload from byte 16 on; more lines of it
//
// Call k uses the root's cell k % depth, whichever member is the root. So the root overwrites its payloads of `depth`
// calls ago or earlier, which all members must have left. Members acknowledge only every `acknowledge_every`-th call.
// This suffices: an awaited member can reach call k - 1 without the root, and call k - depth is older than its last
// acknowledged call. The root checks the acknowledgements when it reuses cells, and is at most `depth` calls ahead of
// the slowest member.
class BroadcastRing {
public:
    static constexpr int max_members = 64;  // a root that reuses its cells reads a line of each
    static constexpr std::uint64_t depth = 32;
    static constexpr std::uint64_t acknowledge_every = depth / 4;
    static constexpr std::uint64_t cell_bytes = 576;
    static constexpr std::uint64_t payload_offset = 16;
    static constexpr std::uint64_t max_payload = cell_bytes - payload_offset;
    static constexpr std::uint64_t bytes =
        FutexCounter::bytes + depth * cell_bytes;  // of each member, aligned to a line

    // `rings` locates each member's ring. `oversubscribed`, equal on all members: there are more PEs than cores, so
    // waiting members sleep and are woken. The waiter must outlive this. `timeout` 0: none.
    BroadcastRing(barrier::MemberStates rings, PeRange members, int index, bool oversubscribed, const Waiter& waiter,
                  std::chrono::nanoseconds timeout)
        : rings_(rings),
          members_(members),
          index_(index),
          oversubscribed_(oversubscribed),
          waiter_(&waiter),
          timeout_(timeout) {}

    // Collective. Copies `count` bytes, at most `max_payload`, from the root's source to every member's dest; null
    // dest: no copy. On return the root has called it; the root waits only for members `depth` calls behind.
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
    // Waits until the line's value is at least this.
    Status wait_for(FutexCounter line, std::uint64_t value, int member);

    barrier::MemberStates rings_;
    PeRange members_;
    int index_;
    bool oversubscribed_;
    const Waiter* waiter_;
    std::chrono::nanoseconds timeout_;
    std::uint64_t call_ = 0;
    std::uint64_t acknowledged_by_all_ = 0;  // all members have left this call
};

}  // namespace npushmem::coll
