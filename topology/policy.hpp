// How NICs are chosen when the user's table (NPUSHMEM_HCA_PE_MAPPING) does not say.
#pragma once

#include <cstdint>
#include <string_view>

#include "npushmem/plugin/status.hpp"

namespace npushmem::topology {

enum class Policy : std::uint8_t {
    balanced,     // every PE a NIC of its nearest class, and among those as even a load as there can be, by their rates
    nearest,      // the two greedy passes that NVSHMEM users know, for comparison
    exclusive,    // a NIC belongs to one device; an error when there are too few
    round_robin,  // in turn by number, wherever they are
    list,         // PE i the i-th port of NPUSHMEM_HCA_LIST; an error when the list is too short
};

// "balanced", "nearest", "exclusive", "round_robin", "list".
std::string_view name_of(Policy policy);
// Fails with Code::config; the message lists the names.
Result<Policy> parse_policy(std::string_view text);

}  // namespace npushmem::topology
