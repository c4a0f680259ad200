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
//     of each member: payloads of broadcasts | two areas for the payloads of an exchange, one for each member, by host
//     a payload of an exchange: `count` bytes; `each`: one block of `count` bytes for each member that reads it
//
// Exchanges use the areas alternately: two that use the same one have an exchange between them, in which each member
// has waited for all. Broadcasts use one line after another. An exchange, which comes at the latest when there is no
// room, frees all lines: after it, all members have left the broadcasts before it.
class LeaderExchange final : public SmallExchange, public SmallBroadcast {
public:
    static constexpr int max_members = 64;
    static constexpr std::uint64_t broadcast_bytes = 4096;                // maximum
    static constexpr std::uint64_t broadcast_room = 8 * broadcast_bytes;  // more than one: an exchange frees enough
    static constexpr std::uint64_t area_bytes = 65536;                    // alltoall: 4 KiB for 4 members, 1 KiB for 8
    static constexpr std::uint64_t areas = 2;
    // Of each member, aligned to a line.
    static constexpr std::uint64_t bytes = broadcast_room + areas * area_bytes;

    // `sync` has all members of the group. `at` is the offset of every member's memory. Both outlive this. Tests use
    // fewer areas and less room for broadcasts.
    LeaderExchange(Group& group, HostSync& sync, std::uint64_t at, std::uint64_t areas_in_use = areas,
                   std::uint64_t broadcast_room_in_use = broadcast_room);

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
    // The payloads of groups with many members are small: every member copies all of them.
    static constexpr std::uint64_t room_for(int members) { return members <= 8 ? area_bytes : 1280; }
    // Returns the offset of the area of the present exchange.
    [[nodiscard]] std::uint64_t area() const { return at_ + broadcast_room + sync_.exchanges() % areas_ * area_bytes; }
    // Collective. Takes room for the payload of a broadcast. Sets `at` to its offset.
    Status take_room(std::uint64_t count, std::uint64_t& at);
    // Returns how many payloads precede a member's.
    [[nodiscard]] std::uint64_t place_of(int member) const { return places_[static_cast<std::size_t>(member)]; }
    Status send_payloads(Status done, int host, std::uint64_t area, std::uint64_t count, bool each);

    Group& group_;
    HostSync& sync_;
    std::uint64_t at_;
    std::vector<std::uint64_t> places_;  // by member
    std::uint64_t areas_;
    std::uint64_t broadcast_room_;
    std::uint64_t used_ = 0;         // by broadcasts since the last exchange
    std::uint64_t used_after_ = 0;   // the number of exchanges before these
    std::vector<std::byte> blocks_;  // what a leader sends
    std::vector<std::byte> received_;
};

}  // namespace npushmem::coll
