// The value of NPUSHMEM_HCA_LIST: `name[:port],...`, or `^name[:port],...` for all but these.
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

struct NicListEntry {
    std::string nic;               // exact
    std::optional<unsigned> port;  // none: all ports of the NIC
    std::string text;              // as the user wrote it, for messages
};

struct NicList {
    bool exclude = false;
    std::vector<NicListEntry> entries;  // in the user's order
};

// Fails with Code::config; the message names the entry and what is wrong with it.
Result<NicList> parse_nic_list(std::string_view text);

// Indices of the rails that the list leaves: in the user's order, or in the order of `rails` for an excluding list. A
// NIC or port that does not exist, one that is named twice, one that is named to be used and is down, and a list that
// leaves nothing are failures with Code::config.
Result<std::vector<std::size_t>> select_rails(const NicList& list, std::span<const Rail> rails);

}  // namespace npushmem::topology
