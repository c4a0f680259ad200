// The value of NPUSHMEM_NIC_RAILS: `name[:port]=rail,...` gives ports of this host their rails (rail_pairs.hpp).
#pragma once

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
    std::string text;  // as the user wrote it, for messages
};

// No entries for an empty text. Fails with Code::config; the message names the entry and what is wrong with it.
Result<std::vector<NicRailEntry>> parse_nic_rails(std::string_view text);

// A port of this host.
struct PortName {
    std::string nic;
    unsigned port = 1;
};

// For each of the ports, the rail that an entry gives it. Fails with Code::config when an entry names a NIC or a port
// that this host does not have, or one that an earlier entry names.
Result<std::vector<std::optional<unsigned>>> configured_rails(std::span<const NicRailEntry> entries,
                                                              std::span<const PortName> ports);

}  // namespace npushmem
