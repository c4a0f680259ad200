// The value of NPUSHMEM_HCA_PE_MAPPING: `name:port:count,...` gives the host's PEs, in order, to ports.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/rail.hpp"

namespace npushmem::topology {

struct NicMappingEntry {
    std::string nic;  // exact
    unsigned port = 1;
    unsigned count = 1;  // PEs
    std::string text;    // as the user wrote it, for messages
};

// Fails with Code::config; the message names the entry and what is wrong with it.
Result<std::vector<NicMappingEntry>> parse_nic_mapping(std::string_view text);

// The entry that covers a PE and the index of its rail.
struct MappedPe {
    std::size_t entry = 0;
    std::size_t rail = 0;
};

// For each of these PEs, by its number among those of the host. Fails with Code::config when a NIC or port does not
// exist, is down or is named twice, and when the counts do not fit: they add up to the number of PEs or, where other
// jobs have PEs on the host too (`others`), to more than every number.
Result<std::vector<MappedPe>> map_pes(const std::vector<NicMappingEntry>& mapping, std::span<const Rail> rails,
                                      std::span<const std::size_t> numbers, bool others);

}  // namespace npushmem::topology
