// SPDX-License-Identifier: BSD-3-Clause
// Parses NPUSHMEM_HCA_LIST and NPUSHMEM_HCA_PE_MAPPING and resolves their entries to rails.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/machine/rail.hpp"

namespace npushmem::topology {

// One entry of a variable, by its position (from 0) and the user's text.
struct EntryName {
    std::string_view variable;
    std::size_t index = 0;
    std::string_view text;

    // Code::config: `NPUSHMEM_HCA_LIST entry 2 "mlx5_9:1": <what>`.
    [[nodiscard]] Status failure(const std::string& what) const;
};

// A whole number of at least 1; digits only.
std::optional<unsigned> parse_positive(std::string_view text);

// Indices of the rails of this NIC, of one port or of all. Fails when the NIC (the message lists the NICs and a similar
// name) or the port does not exist.
Result<std::vector<std::size_t>> find_rails(const EntryName& entry, std::string_view nic, std::optional<unsigned> port,
                                            std::span<const Rail> rails);

// "mlx5_0:1, mlx5_1:1".
std::string names_of(std::span<const Rail> rails);

struct NicListEntry {
    std::string nic;               // exact
    std::optional<unsigned> port;  // none: all ports of the NIC
    std::string text;              // as the user wrote it, for messages
};

struct NicList {
    bool exclude = false;
    std::vector<NicListEntry> entries;  // in the user's order
};

// Parses NPUSHMEM_HCA_LIST: `name[:port],...`, or `^name[:port],...` to exclude these. Fails with Code::config; the
// message names the entry and its error.
Result<NicList> parse_nic_list(std::string_view text);

// Indices of the rails that the list leaves: in the user's order, or in the order of `rails` for an excluding list.
// Fails with Code::config when a NIC or port does not exist, is named twice or is selected and down, and when the list
// leaves no rail.
Result<std::vector<std::size_t>> select_rails(const NicList& list, std::span<const Rail> rails);

struct NicMappingEntry {
    std::string nic;  // exact
    unsigned port = 1;
    unsigned count = 1;  // PEs
    std::string text;    // as the user wrote it, for messages
};

// Parses NPUSHMEM_HCA_PE_MAPPING: `name:port:count,...` assigns the host's PEs, in order, to ports. Fails with
// Code::config; the message names the entry and its error.
Result<std::vector<NicMappingEntry>> parse_nic_mapping(std::string_view text);

// The entry that covers a PE and the index of its rail.
struct MappedPe {
    std::size_t entry = 0;
    std::size_t rail = 0;
};

// For each of these PEs, by its number among those of the host. Fails with Code::config when a NIC or port does not
// exist, is down or is named twice, and when the counts do not fit. Without other jobs the counts must sum to the
// number of PEs; with PEs of other jobs on the host (`others`) the sum must exceed every number.
Result<std::vector<MappedPe>> map_pes(const std::vector<NicMappingEntry>& mapping, std::span<const Rail> rails,
                                      std::span<const std::size_t> numbers, bool others);

}  // namespace npushmem::topology
