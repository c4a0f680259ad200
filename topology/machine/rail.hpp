// SPDX-License-Identifier: BSD-3-Clause
// A rail is one port of one NIC: the unit that is assigned to PEs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"
#include "topology/machine/distance.hpp"
#include "topology/machine/machine.hpp"

namespace npushmem::topology {

struct Rail {
    std::string nic;
    unsigned port = 1;
    PortState state = PortState::unknown;
    std::uint64_t bits_per_second = 0;                   // 0 when unknown
    Location location;                                   // empty when the machine does not contain the NIC
    std::optional<std::uint32_t> number = std::nullopt;  // that the transport reports for the port
};

// "mlx5_0:1".
std::string name_of(const Rail& rail);

// The rails that a transport offers (Transport::devices), in its order. A device is looked up in the machine by its PCI
// address, then by its name; if both fail its location is empty.
std::vector<Rail> rails_of(const Machine& machine, std::span<const npushmem_device> devices);

// The machine's own rails, for a report without a transport: the ports of its verbs devices, or of its network
// interfaces if it has no verbs device (an interface next to a verbs device is the same hardware).
std::vector<Rail> rails_of(const Machine& machine);

// The rail numbers that pair ports of two hosts. The first of these that exists: the number that NPUSHMEM_NIC_RAILS
// (`nic_rails`) gives; the one that the transport reports, by which it connects the port; the rail's position among the
// host's rails, in the machine's order. Fails with Code::config as configured_rails does.
Result<std::vector<std::uint32_t>> rail_numbers(std::span<const Rail> rails, const std::string& nic_rails);

}  // namespace npushmem::topology
