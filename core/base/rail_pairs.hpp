// Which ports of two PEs are connected. A rail is what connects ports of equal number on all hosts: a plane of the
// network of its own, or the switches that serve these ports directly. Both PEs, and every report, call this one
// function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace npushmem {

// The subnet of a port's address. Two subnets are one when as many first bits count and these bits are equal.
struct Subnet {
    std::array<std::uint8_t, 16> address{};
    unsigned bits = 0;  // that count; 0: the subnet is unknown
};

struct RailId {
    unsigned number = 0;
    bool given = false;  // by the user: then the numbers alone decide
    Subnet subnet;
};

// Indices of the two ports.
struct RailPair {
    std::size_t mine = 0;
    std::size_t theirs = 0;

    friend bool operator==(const RailPair&, const RailPair&) = default;
};

// The pairs of ports of `my_pe` and `pe`, the one to rely on first; each port is in one pair at most. Ports of one
// rail are paired: those of equal number, and those of one known subnet, whatever their numbers are. Where the two PEs
// have no rail in common, the i-th ports are paired. The two PEs get the same pairs in the same order. Empty only
// when a PE has no port.
std::vector<RailPair> pair_rails(int my_pe, std::span<const RailId> mine, int pe, std::span<const RailId> theirs);

// Why these two are a pair: "rail 0 on both ends", "rails 0 and 3 in one subnet", "rails 0 and 3, no rail in common".
std::string pairing_reason(const RailId& mine, const RailId& theirs);

}  // namespace npushmem
