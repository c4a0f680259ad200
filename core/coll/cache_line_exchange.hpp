// A few bytes from every member to every other, in the very lines that say that they have come: what small collective
// operations need, in one trip between two caches and without a separate barrier.
//
//     of each member, all zero at first: a ring of `depth` turns of one cell for each sender
//     | turn 0: cell of member 0 | cell of member 1 | ... | turn 1: cell of member 0 | ...
//     a cell: 0..63 a FutexCounter whose value is the call's number, with the payload from byte 16 on; 64..127 more of
//     it
//
// Every member sends to every other in every call, and leaves it when all have come to it. Call k uses turn k % 2, so a
// sender writes over what it has sent in call k - 2: it has seen that the receiver has come to call k - 1, and a
// receiver reads a cell before its next call.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/base/parking.hpp"
#include "core/base/wait.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"

namespace npushmem::coll {

// Waiting at a line that a member stores to, and waking those who do: the same for all small collective operations.

// Until `ready()`, which loads the line with acquire. `parks`: who stores there looks for sleepers, so that this may
// sleep until it is woken. `pe`: whose store it is, for the message.
template <class Ready>
[[gnu::noinline]] Status wait_at_line(const Waiter& waiter, FutexCounter line, Ready&& ready, WaitFor what, bool parks,
                                      int pe) {
    // Loads of the line before anything else is done about it: longer than a line needs from one cache to another,
    // shorter than it takes to let somebody else run.
    constexpr int first_polls = 200;
    for (int i = 0; i < first_polls && waiter.budget().polls != 0; ++i)
        if (ready()) return {};
    FutexParking parking{line};
    what.parking = parks ? &parking : nullptr;
    WaitFailure failure;
    const Code code = waiter.until(ready, what, &failure);
    if (parking.woken() != 0) waiter.count_woken(parking.woken());
    if (code == Code::ok) return {};
    return {code, fmt::format("{}; nothing has come from PE {}", describe(what, failure), pe)};
}

// One member's side; one thread at a time. All members map each other.
class CacheLineExchange {
public:
    static constexpr int max_members = 8;  // beyond, everybody writing to everybody costs more than a barrier
    static constexpr std::uint64_t depth = 2;
    static constexpr std::uint64_t cell_bytes = 128;
    static constexpr std::uint64_t payload_offset = 16;
    static constexpr std::uint64_t max_payload = cell_bytes - payload_offset;
    static constexpr std::uint64_t bytes = depth * max_members * cell_bytes;  // of each member, aligned to a line

    // `cells`: where each member's are. The waiter must outlive this. `timeout` 0: none.
    CacheLineExchange(barrier::MemberStates cells, PeRange members, int index, const Waiter& waiter,
                      std::chrono::nanoseconds timeout)
        : cells_(cells), members_(members), index_(index), waiter_(&waiter), timeout_(timeout) {}

    // Collective. `count` bytes, at most `max_payload`, from source + member * step to each member. On return all have
    // called it, and what they wrote before is visible.
    Status run(const std::byte* source, std::uint64_t step, std::uint64_t count);

    // What a member has sent in the last call: aligned to 16 bytes; until this member's next call.
    [[nodiscard]] const std::byte* of(int member) const { return cell(index_, member, call_) + payload_offset; }

private:
    [[nodiscard]] std::byte* cell(int receiver, int sender, std::uint64_t call) const {
        return cells_.of(receiver) + (call % depth * max_members + static_cast<std::size_t>(sender)) * cell_bytes;
    }
    // The i-th member after this one.
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
    bool sleepers_woken_ = false;  // those that sleep, of this call
};

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
