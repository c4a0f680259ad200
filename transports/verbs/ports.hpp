// SPDX-License-Identifier: BSD-3-Clause
// The RDMA ports of this machine and their rails, for the NIC assignment.
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

// The text for an errno value: "No such device (19)".
std::string text_of_error(int error);

// The ports in the order of the library. Skips devices that cannot be opened; `notes` gives the reasons. Leaves nothing
// open.
Result<std::vector<npushmem_device>> list_ports(VerbsLibrary& library, std::vector<std::string>& notes);

// Bits per second for the active_width and active_speed of a port; 0: unknown.
std::uint64_t rate_of(std::uint8_t width, std::uint8_t speed);

// "rxe0:1"
std::string name_of(const npushmem_device& port);

// The rail of each RDMA port of this host (core/base/nic_rails.hpp), without its subnet: the number that an entry
// gives it, or its position among all ports, including ports that are down, ordered by PCI address, name and port.
// Fails with Code::config as configured_rails does.
Result<std::vector<RailId>> rails_of_ports(std::span<const npushmem_device> ports,
                                           std::span<const NicRailEntry> entries);

// The ports of this machine, and the one that this PE uses.
class PortSelection {
public:
    // Chooses the active port for the PE of this index on its host, round robin. The error says what the machine lacks.
    // Opens no port.
    static Result<PortSelection> find(VerbsLibrary& library, const VerbsSettings& settings, int local_index);

    [[nodiscard]] const std::vector<npushmem_device>& all() const { return ports_; }
    [[nodiscard]] const npushmem_device& chosen() const { return ports_[chosen_]; }
    // Without its subnet.
    [[nodiscard]] const RailId& rail() const { return rails_[chosen_]; }
    Status choose(std::size_t index);

private:
    std::vector<npushmem_device> ports_;
    std::vector<RailId> rails_;  // of the ports
    std::size_t chosen_ = 0;
};

// The subnets of this host's interfaces, as ranges that start with the interface's address.
std::vector<GidRange> host_subnets();

// The length of the address's subnet prefix; 0: unknown. On InfiniBand that of the GID prefix, on Ethernet that of the
// interface with this address. Link-local addresses are the same everywhere and have no known subnet.
unsigned subnet_bits(const ibv_gid& gid, bool ethernet, std::span<const GidRange> subnets);

}  // namespace npushmem::verbs
