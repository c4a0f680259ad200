// SPDX-License-Identifier: BSD-3-Clause
// The value of NPUSHMEM_NIC_RAILS, `name[:port]=rail,...`, which assigns rails to ports of this host; and the pairing
// of two PEs' ports by rail.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

constexpr unsigned max_rail = 255;

struct NicRailEntry {
    std::string nic;               // exact
    std::optional<unsigned> port;  // none: all ports of the NIC
    unsigned rail = 0;
    std::string text;  // the entry's text, for messages
};

// Returns no entries for an empty text. Fails with Code::config; the message names the entry and the error.
Result<std::vector<NicRailEntry>> parse_nic_rails(std::string_view text);

// A port of this host.
struct PortName {
    std::string nic;
    unsigned port = 1;
};

// Returns for each port the rail that an entry assigns to it. Fails with Code::config when an entry names a NIC or a
// port that this host does not have, or a port that an earlier entry names.
Result<std::vector<std::optional<unsigned>>> configured_rails(std::span<const NicRailEntry> entries,
                                                              std::span<const PortName> ports);

// The subnet of a port's address. Two subnets are equal when their `bits` and their first `bits` bits are equal.
struct Subnet {
    std::array<std::uint8_t, 16> address{};
    unsigned bits = 0;  // length of the prefix; 0: the subnet is unknown
};

struct RailId {
    unsigned number = 0;
    bool given = false;  // by the user: then only the numbers count
    Subnet subnet;
};

// A rail connects ports of equal number on all hosts: a separate network plane, or the switches that serve these ports
// directly. This pair holds the indices of two connected ports.
struct RailPair {
    std::size_t mine = 0;
    std::size_t theirs = 0;

    friend bool operator==(const RailPair&, const RailPair&) = default;
};

// Returns the pairs of ports of `my_pe` and `pe`, the preferred pair first; each port is in one pair at most. Pairs the
// ports of one rail: those of equal number, and those of one known subnet, whatever their numbers are. If the PEs have
// no rail in common, pairs the i-th ports. Both PEs compute the same pairs in the same order. Empty only when a PE has
// no port. Connections and reports all use this function.
std::vector<RailPair> pair_rails(int my_pe, std::span<const RailId> mine, int pe, std::span<const RailId> theirs);

// Returns why two ports are paired: "rail 0 on both ends", "rails 0 and 3 in one subnet", "rails 0 and 3, no rail in
// common".
std::string pairing_reason(const RailId& mine, const RailId& theirs);

}  // namespace npushmem
