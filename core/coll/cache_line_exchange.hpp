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

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/base/futex_counter.hpp"
#include "core/base/wait.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"

namespace npushmem::coll {

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

}  // namespace npushmem::coll
