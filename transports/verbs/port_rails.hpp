// The rail of each RDMA port of this host (core/base/rail_pairs.hpp).
#pragma once

#include <infiniband/verbs.h>

#include <span>
#include <vector>

#include "core/base/nic_rails.hpp"
#include "core/base/rail_pairs.hpp"
#include "npushmem/plugin/transport.h"
#include "transports/verbs/gid_range.hpp"

namespace npushmem::verbs {

// Without a subnet: the number that an entry gives the port, or its place among all ports in the order of PCI address,
// name and port, ports that are down included. Fails with Code::config as configured_rails does.
Result<std::vector<RailId>> rails_of_ports(std::span<const npushmem_device> ports,
                                           std::span<const NicRailEntry> entries);

// The subnets of this host's interfaces, as ranges that begin with the interface's own address.
std::vector<GidRange> host_subnets();

// The bits of the address that are its subnet's; 0: unknown. On InfiniBand the prefix, on Ethernet what the interface
// with this address says. Addresses of the link are the same everywhere and say nothing.
unsigned subnet_bits(const ibv_gid& gid, bool ethernet, std::span<const GidRange> subnets);

}  // namespace npushmem::verbs
