// The RDMA ports of this machine, as the NIC assignment wants to know them.
#pragma once

#include <infiniband/verbs.h>

#include <span>
#include <string>
#include <vector>

#include "core/base/nic_rails.hpp"
#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"
#include "transports/verbs/verbs_library.hpp"
#include "transports/verbs/verbs_settings.hpp"

namespace npushmem::verbs {

// "No such device (19)": what a number in errno means.
std::string text_of_error(int error);

// In the order of the library; a device that cannot be opened is left out, and `notes` says why. Nothing stays open.
Result<std::vector<npushmem_device>> list_ports(VerbsLibrary& library, std::vector<std::string>& notes);

// Bits per second, as active_width and active_speed of a port encode them; 0: unknown.
std::uint64_t rate_of(std::uint8_t width, std::uint8_t speed);

// "rxe0:1"
std::string name_of(const npushmem_device& port);

// The rail of each RDMA port of this host (core/base/rail_pairs.hpp).

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
