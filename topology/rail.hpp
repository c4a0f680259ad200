// A rail is one port of one NIC: the unit that is assigned to PEs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"
#include "topology/distance.hpp"
#include "topology/machine.hpp"

namespace npushmem::topology {

struct Rail {
    std::string nic;
    unsigned port = 1;
    PortState state = PortState::unknown;
    std::uint64_t bits_per_second = 0;  // 0 when unknown
    Location location;                  // empty when the machine does not know the NIC
};

// "mlx5_0:1".
std::string name_of(const Rail& rail);

// The rails that a transport offers (Transport::devices), in its order. A device is found in the machine by its PCI
// address, else by its name; one that is in neither gets an empty location.
std::vector<Rail> rails_of(const Machine& machine, std::span<const npushmem_device> devices);

// The machine's own rails, for a report without a transport: the ports of its verbs devices, or of its network
// interfaces when it has none (an interface beside a verbs device is the same hardware).
std::vector<Rail> rails_of(const Machine& machine);

// The number by which each of a host's rails, in the machine's order, is paired with those of other hosts: its place,
// or what NPUSHMEM_NIC_RAILS (`nic_rails`) gives it. Fails with Code::config as configured_rails does.
Result<std::vector<std::uint32_t>> rail_numbers(std::span<const Rail> rails, const std::string& nic_rails);

}  // namespace npushmem::topology
