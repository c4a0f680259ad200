// What a PE of some job on this host says about a NIC port that it uses, for all other jobs on the host to read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/host_table.hpp"
#include "topology/machine.hpp"
#include "topology/rail.hpp"

namespace npushmem::topology {

struct NicClaim {
    ProcessId process;          // the PE's; the claim ends with it
    std::uint64_t job = 0;      // equal for the claims of one job on the host
    std::uint64_t machine = 0;  // equal for processes that look at the same machine, see machine_key
    std::uint32_t pe = 0;       // its number in its job
    std::uint32_t number = 0;   // of its NPU among those of the host
    std::string device;         // PCI address of what the NPU stands in for; may be empty
    std::string nic;
    std::uint32_t port = 1;
    bool first = true;  // the PE's first NIC, which carries most; a further one otherwise
    DistanceClass distance = DistanceClass::sys;

    bool operator==(const NicClaim&) const = default;
};

// Claims concern each other when this is equal: the same machine, real or from a file, and the same emulated host.
std::uint64_t machine_key(const Machine& machine, std::int64_t emulated_host);

// Names longer than a row holds are cut.
HostTableRow to_row(const NicClaim& claim);
// Nothing when the row's content is no claim.
std::optional<NicClaim> claim_from(const HostTableRow& row);

// Those of this machine, of jobs other than `job`.
std::vector<NicClaim> claims_of_others(std::span<const HostTableRow> rows, std::uint64_t machine, std::uint64_t job);

// How many PEs use each rail as their first NIC, and whether any uses it as a further one.
struct RailUse {
    std::vector<std::size_t> first_users;
    std::vector<bool> further;
};
RailUse use_of(std::span<const NicClaim> claims, std::span<const Rail> rails);

// The NPU of each PE: the one it asks for, otherwise the lowest number that neither another job nor another PE has.
std::vector<std::uint32_t> npu_numbers(std::span<const std::optional<std::uint32_t>> wanted,
                                       std::span<const NicClaim> others);

// A table of the claims on the machine of this key, jobs together, for people; one sentence when there are none. Claims
// on other machines (those of topology files, other emulated hosts) follow in a table of their own: their NICs may bear
// the same names and are others.
std::string describe(std::span<const NicClaim> claims, std::uint64_t machine);

}  // namespace npushmem::topology
