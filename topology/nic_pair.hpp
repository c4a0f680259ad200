// Which of two PEs' NICs talk to each other. NICs of the same number on different hosts are one rail: switches of a
// cluster usually connect them directly, and everything else crosses a further switch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/assignment.hpp"

namespace npushmem::topology {

struct NicPair {
    NicChoice mine;
    NicChoice theirs;

    [[nodiscard]] bool same_rail() const { return mine.rail == theirs.rail; }
};

// One pair for each of `mine`'s NICs, in their order but those of one rail first: the peer's NIC of the same rail where
// it has one, otherwise the peer's NICs in turn. Empty when either has none. NicChoice::rail counts the NICs of a host
// in its machine's order, so that hosts that are built alike number their rails alike.
std::vector<NicPair> pair_nics(const PeAssignment& mine, const PeAssignment& peer);

// "rail 0 on both ends"; "rails 0 and 3, as the peer has no NIC of rail 0".
std::string why(const NicPair& pair);

}  // namespace npushmem::topology
