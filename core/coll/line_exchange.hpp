// A few bytes from every member to every other, in the very lines that say that they have come: what small collective
// operations need, in one trip between two caches and without a meeting besides.
//
//     of each member, all zero at first: for either parity of the call, one cell for each sender
//     | cell of member 0 | cell of member 1 | ... |
//     a cell: 0..63 a SharedLine whose value is the call's number, with the payload from byte 16 on; 64..127 more of it
//
// A sender may use a cell again two calls later: it comes there only after the receiver has come to the call between,
// which it does when it has read the cell.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/base/shared_line.hpp"
#include "core/base/wait.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"

namespace npushmem::coll {

// One member's side; one thread at a time. All members map each other.
class LineExchange {
public:
    static constexpr int most_members = 8;  // beyond, everybody writing to everybody costs more than a meeting
    static constexpr std::uint64_t cell_bytes = 128;
    static constexpr std::uint64_t payload_at = 16;
    static constexpr std::uint64_t room = cell_bytes - payload_at;
    static constexpr std::uint64_t bytes = 2 * most_members * cell_bytes;  // of each member, aligned to a line

    // `cells`: where each member's are. The waiter must outlive this. `timeout` 0: none.
    LineExchange(barrier::StridedStates cells, PeRange members, int index, const Waiter& waiter,
                 std::chrono::nanoseconds timeout)
        : cells_(cells), members_(members), index_(index), waiter_(&waiter), timeout_(timeout) {}

    // Collective. `count` bytes, at most `room`, from source + member * step to each member. On return all have called
    // it, and what they wrote before is visible.
    Status run(const std::byte* source, std::uint64_t step, std::uint64_t count);

    // What a member has sent in the last run: aligned to 16 bytes; until this member's next run.
    [[nodiscard]] const std::byte* of(int member) const { return cell(index_, member) + payload_at; }

private:
    [[nodiscard]] std::byte* cell(int receiver, int sender) const {
        const auto parity = static_cast<std::size_t>(call_ % 2);
        return cells_.of(receiver) + (parity * most_members + static_cast<std::size_t>(sender)) * cell_bytes;
    }
    void send(int member, const std::byte* payload, std::uint64_t count);
    [[nodiscard]] bool has_come(int member) const;
    void wake_sleepers_of_all();
    [[gnu::noinline]] Status wait_for(int member);

    barrier::StridedStates cells_;
    PeRange members_;
    int index_;
    const Waiter* waiter_;
    std::chrono::nanoseconds timeout_;
    std::uint64_t call_ = 0;
    bool told_ = false;  // those that sleep, of this call
};

}  // namespace npushmem::coll
