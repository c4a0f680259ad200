// Why a PE has the NIC it has, as one sentence.
#pragma once

#include <cstddef>
#include <string>

#include "topology/assignment.hpp"

namespace npushmem::topology {

struct ReasonFacts {
    // Who decided, as the start of the sentence ("entry 1 \"mlx5_0:1:3\" of NPUSHMEM_HCA_PE_MAPPING gives it "); empty
    // when distance decided.
    std::string decided_by;
    std::size_t equally_near = 1;  // usable ports in the class of the first NIC, itself included
    bool place_known = true;       // of the device and the first NIC
    std::string nearer;            // a usable port of a better class, "mlx5_1:1 (PIX)"; empty when there is none
};

// `nics` is not empty.
std::string reason_of(const std::vector<NicChoice>& nics, const ReasonFacts& facts);

// "PE 3", "PEs 3 and 4", "PEs 1, 2, 3 and 9 more".
std::string pes_text(const std::vector<std::uint32_t>& pes);

// "mlx5_0:1".
std::string name_of(const NicChoice& nic);

}  // namespace npushmem::topology
