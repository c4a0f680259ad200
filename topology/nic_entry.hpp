// What the parsers of NPUSHMEM_HCA_LIST and NPUSHMEM_HCA_PE_MAPPING share: naming an entry in a message, numbers,
// look-up.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/rail.hpp"

namespace npushmem::topology {

// One entry of a variable, by its place in it (from 0) and the user's text.
struct EntryName {
    std::string_view variable;
    std::size_t index = 0;
    std::string_view text;

    // Code::config: `NPUSHMEM_HCA_LIST entry 2 "mlx5_9:1": <what>`.
    [[nodiscard]] Status failure(const std::string& what) const;
};

// A whole number of at least 1 that is nothing but digits.
std::optional<unsigned> parse_positive(std::string_view text);

// Indices of the rails of this NIC, of one port or of all. Fails when there is no such NIC (the message lists those
// that exist, and a near name) or port.
Result<std::vector<std::size_t>> find_rails(const EntryName& entry, std::string_view nic, std::optional<unsigned> port,
                                            std::span<const Rail> rails);

// "mlx5_0:1, mlx5_1:1".
std::string names_of(std::span<const Rail> rails);

}  // namespace npushmem::topology
