// SPDX-License-Identifier: BSD-3-Clause
// Small collective operations over mapped memory. Cache lines carry the payload together with the signal of its
// arrival, so an operation takes one transfer between two caches and no separate barrier.
#pragma once

#include <fmt/core.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/base/parking.hpp"
#include "core/base/wait.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"
#include "core/coll/small_exchange.hpp"

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
    what.writers_wake = parks;
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
class CacheLineExchange final : public SmallExchange {
public:
    static constexpr int max_members = 8;  // above, all-to-all writes cost more than a barrier
    static constexpr std::uint64_t depth = 2;
    static constexpr std::uint64_t cell_bytes = 128;
    static constexpr std::uint64_t payload_offset = 16;
    static constexpr std::uint64_t payload_bytes = cell_bytes - payload_offset;  // maximum
    static constexpr std::uint64_t bytes = depth * max_members * cell_bytes;     // of each member, aligned to a line

    // `cells` locates each member's cells. The waiter must outlive this. `timeout` 0: none.
    CacheLineExchange(barrier::MemberStates cells, PeRange members, int index, const Waiter& waiter,
                      std::chrono::nanoseconds timeout)
        : cells_(cells), members_(members), index_(index), waiter_(&waiter), timeout_(timeout) {}

    [[nodiscard]] std::uint64_t max_payload(bool /*each*/) const override { return payload_bytes; }
    Status run(const std::byte* source, std::uint64_t count, bool each) override;

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

// Small broadcasts without a barrier in between. Each member has a ring of messages in its own memory. As a root, it
// writes its payload there once, and the others read it. For one member; one thread at a time. All members map each
// other.
//
//     of each member, all zero at first: | acknowledgements | publications | segments of messages |
//     acknowledgements: a FutexCounter, the last call that the member has left
//     publications: a FutexCounter, the member's last call as a root; kept only where members sleep, which they do here
//     a message: the call's number, 8 bytes | payload, padded to 8 bytes
//
// Messages follow each other without gaps, so that one transfer between caches carries several short ones. A message
// that does not fit into the rest of its segment begins the next one. Calls and their sizes are equal on all members,
// so each member knows where the next message of every root begins. A header that is awaited never holds payload: the
// first header of a segment is always a header, and the root clears each other one before it publishes the message
// before it.
//
// A root that enters a segment overwrites its messages of the lap before, which all members must have left. Members
// acknowledge the calls before each call that enters a segment of any root. This suffices: they have acknowledged the
// last message of a segment when the root has entered the one behind it, a lap ago.
class BroadcastRing final : public SmallBroadcast {
public:
    static constexpr int max_members = 64;  // a root that enters a segment reads a line of each
    static constexpr std::uint64_t segments = 4;
    static constexpr std::uint64_t segment_bytes = 4096;
    static constexpr std::uint64_t header_bytes = 8;
    static constexpr std::uint64_t payload_bytes = 560;  // maximum
    // Of each member, aligned to a line.
    static constexpr std::uint64_t bytes = 2 * FutexCounter::bytes + segments * segment_bytes;

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

    [[nodiscard]] std::uint64_t max_broadcast() const override { return payload_bytes; }
    // The root waits for members that are a ring behind.
    Status broadcast(const std::byte* source, std::byte* dest, std::uint64_t count, int root) override;

private:
    // Where the next message of a root begins.
    struct Place {
        std::uint32_t segment = 0;
        std::uint32_t used = 0;  // bytes of the segment
    };

    [[nodiscard]] FutexCounter acknowledged(int member) const { return FutexCounter(rings_.of(member)); }
    [[nodiscard]] FutexCounter published(int root) const { return FutexCounter(rings_.of(root) + FutexCounter::bytes); }
    [[nodiscard]] std::byte* at(int root, const Place& place) const {
        return rings_.of(root) + 2 * FutexCounter::bytes + place.segment * segment_bytes + place.used;
    }
    Status enter_next_segment(int root);
    void send(const std::byte* source, std::uint64_t count, std::byte* message);
    Status receive(std::byte* dest, std::uint64_t count, std::byte* message, int root);
    Status wait_until_acknowledged(std::uint64_t call);
    // Waits for a store by a member, which wakes the sleepers of `line`.
    template <class Ready>
    Status wait_for(const Ready& ready, FutexCounter line, int member);
    // Stores a call's number in the line and wakes the members that sleep on it.
    void publish(FutexCounter line, std::uint64_t call);

    barrier::MemberStates rings_;
    PeRange members_;
    int index_;
    bool oversubscribed_;
    const Waiter* waiter_;
    std::chrono::nanoseconds timeout_;
    std::uint64_t call_ = 0;
    std::array<Place, max_members> places_{};           // of each root
    std::array<std::uint64_t, segments> last_calls_{};  // of this member as a root, in each segment
};

}  // namespace npushmem::coll
