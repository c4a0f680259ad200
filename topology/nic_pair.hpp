// Which of two PEs' NICs are connected, before a transport knows more of them: by rail (core/base/rail_pairs.hpp).
#pragma once

#include <string>
#include <vector>

#include "topology/assignment.hpp"

namespace npushmem::topology {

struct NicPair {
    NicChoice mine;
    NicChoice theirs;
    std::string why;  // "rail 0 on both ends"
};

// As pair_rails. Empty when either has no NIC.
std::vector<NicPair> pair_nics(const PeAssignment& mine, const PeAssignment& peer);

}  // namespace npushmem::topology
