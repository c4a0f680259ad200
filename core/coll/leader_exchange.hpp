// SPDX-License-Identifier: BSD-3-Clause
// Small collective operations of members on several hosts, without barriers and acknowledgements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/coll/host_sync.hpp"
#include "core/coll/small_exchange.hpp"

namespace npushmem::coll {

class Group;

// The leader of each host collects the payloads of its host and sends them to the other leaders in one message. The
// members of a host read all payloads in their leader's memory. A root sends its payload to the leaders itself.
//
//     of each member: a turn for each turn of the HostSync, with one payload for each member, by host; two wide turns,
//     likewise
//     a payload: `count` bytes, `each`: one block of `count` bytes for each member that reads it
class LeaderExchange final : public SmallExchange, public SmallBroadcast {
public:
    static constexpr int max_members = 64;
    static constexpr std::uint64_t room = 1280;  // of a turn
    // Exchanges of larger payloads, of groups with few members, use the wide turns alternately: two that use the same
    // one have an exchange between them, in which each member has waited for all.
    static constexpr std::uint64_t wide_room = 16384;
    static constexpr std::uint64_t wide_turns = 2;
    static constexpr int max_wide_members = 8;
    // Of each member, aligned to a line.
    static constexpr std::uint64_t bytes = HostSync::turns * room + wide_turns * wide_room;
    static constexpr std::uint64_t broadcast_bytes = 560;  // maximum

    // `sync` has all members of the group. `at` is the offset of every member's memory. Both outlive this. Tests use
    // smaller turns and fewer wide ones.
    LeaderExchange(Group& group, HostSync& sync, std::uint64_t at, std::uint64_t turn_bytes = room,
                   std::uint64_t wide_turns_in_use = wide_turns);

    // The maxima for a group of that many members.
    static constexpr std::uint64_t payload_bytes(int members) {
        return std::min(room_for(members) / static_cast<std::uint64_t>(members) / 16 * 16, largest_payload);
    }
    static constexpr std::uint64_t block_bytes(int members) {
        const auto n = static_cast<std::uint64_t>(members);
        return std::min(room_for(members) / n / n, largest_payload);
    }

    [[nodiscard]] std::uint64_t max_payload(bool each) const override;
    Status run(const std::byte* source, std::uint64_t count, bool each) override;

    [[nodiscard]] std::uint64_t max_broadcast() const override { return broadcast_bytes; }
    Status broadcast(const std::byte* source, std::byte* dest, std::uint64_t count, int root) override;

private:
    static constexpr std::uint64_t room_for(int members) { return members <= max_wide_members ? wide_room : room; }
    // Returns the offset of the present turn.
    [[nodiscard]] std::uint64_t turn_at() const { return at_ + sync_.turn() * room; }
    // Returns the turn of an exchange of that many bytes of all members.
    [[nodiscard]] std::uint64_t turn_for(std::uint64_t all_bytes) const;
    // Returns how many payloads precede a member's.
    [[nodiscard]] std::uint64_t place_of(int member) const { return places_[static_cast<std::size_t>(member)]; }
    Status send_payloads(Status done, int host, std::uint64_t turn, std::uint64_t count, bool each);

    Group& group_;
    HostSync& sync_;
    std::uint64_t at_;
    std::vector<std::uint64_t> places_;  // by member
    std::uint64_t turn_bytes_;
    std::uint64_t wide_turns_;
    std::vector<std::byte> blocks_;  // what a leader sends
    std::vector<std::byte> received_;
};

}  // namespace npushmem::coll
