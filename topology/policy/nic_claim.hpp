// SPDX-License-Identifier: BSD-3-Clause
// Claims: records in a table of the host in which every PE publishes the NIC ports that it uses, for other jobs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/host_table.hpp"
#include "topology/machine/machine.hpp"
#include "topology/machine/rail.hpp"

namespace npushmem::topology {

struct NicClaim {
    ProcessId process;          // the PE's; the claim ends with it
    std::uint64_t job = 0;      // equal for the claims of one job on the host
    std::uint64_t machine = 0;  // equal for processes with the same machine, see machine_key
    std::uint32_t pe = 0;       // its number in its job
    std::uint32_t number = 0;   // of its NPU among those of the host
    std::string device;         // PCI address of the device that the NPU stands in for; may be empty
    std::string nic;
    std::uint32_t port = 1;
    bool first = true;  // the PE's first NIC, which carries most traffic; false: a secondary NIC
    DistanceClass distance = DistanceClass::sys;

    bool operator==(const NicClaim&) const = default;
};

// Only claims with equal keys compete: the same machine, real or from a file, and the same emulated host.
std::uint64_t machine_key(const Machine& machine, std::int64_t emulated_host);

// Truncates names that are longer than a row holds.
HostTableRow to_row(const NicClaim& claim);
// None when the row's content is not a claim.
std::optional<NicClaim> claim_from(const HostTableRow& row);

// The claims on this machine by jobs other than `job`.
std::vector<NicClaim> claims_of_others(std::span<const HostTableRow> rows, std::uint64_t machine, std::uint64_t job);

// Per rail: the number of PEs that use it as their first NIC, and whether one uses it as a secondary NIC.
struct RailUse {
    std::vector<std::size_t> first_users;
    std::vector<bool> further;
};
RailUse use_of(std::span<const NicClaim> claims, std::span<const Rail> rails);

// The NPU of each PE: the one it requests, otherwise the lowest number that neither another job nor another PE has.
std::vector<std::uint32_t> npu_numbers(std::span<const std::optional<std::uint32_t>> wanted,
                                       std::span<const NicClaim> others);

}  // namespace npushmem::topology
