// SPDX-License-Identifier: BSD-3-Clause
// Assigns NICs to the PEs of this host, from the user's settings, the machine and the claims of other jobs on the host.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/host_table.hpp"
#include "core/map/host_layout.hpp"
#include "core/map/transport_map.hpp"
#include "core/memory/host_memory.hpp"
#include "core/runtime/pe_table.hpp"
#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/transport.hpp"
#include "topology/machine/machine.hpp"
#include "topology/machine/place.hpp"
#include "topology/policy/assignment.hpp"
#include "topology/policy/nic_claim.hpp"

namespace npushmem {

// The PEs of one job on this host that want NICs.
struct NicRequest {
    std::vector<int> pes;
    // The NPU of the host that each PE drives (NPUSHMEM_DEVICE); empty: no PE names one.
    std::vector<std::optional<std::uint32_t>> npus;
    // The devices of the transport that uses the NICs; empty: all of the machine, for a report.
    std::span<const npushmem_device> devices;
};

struct NicChoices {
    topology::Assignment assignment;
    std::vector<topology::DevicePlace> places;  // of the PEs of `wanted`, in their order
};

// `others` are the claims of other jobs. A machine without NICs gives an empty assignment, which is no failure.
Result<NicChoices> choose_nics(const Settings& settings, const topology::Machine& machine, const NicRequest& wanted,
                               std::span<const topology::NicClaim> others);

// The table in which the jobs of this host publish their claims.
HostTablePlace nic_table_place();

// Returns the claims of all jobs on the host, of every user and machine; for reports.
std::vector<topology::NicClaim> all_nic_claims();

// Returns the NICs that a job of these PEs would get now, without claiming them. The second form uses this machine, or
// the one of NPUSHMEM_TOPO_FILE.
Result<NicChoices> preview_nics(const Settings& settings, const topology::Machine& machine,
                                const std::vector<int>& pes);
Result<topology::Assignment> preview_nics(const Settings& settings, const std::vector<int>& pes);

// The claims of one job on the NICs of this host. The destructor releases them in the process that made them; a copy in
// a forked child releases nothing. The claims of a process that dies end with it.
class NicClaims {
public:
    NicClaims() = default;
    NicClaims(NicClaims&& other) noexcept;
    NicClaims& operator=(NicClaims&& other) noexcept;
    ~NicClaims();

    struct Outcome;
    // Chooses NICs for `wanted` with regard to the claims of others, and claims them in one atomic step. `processes`
    // are those of the PEs of `wanted`. Without NPUSHMEM_NIC_ARBITRATION, or if the table cannot be used, the claims of
    // other jobs are not seen; in the second case the outcome has a warning. Fails as choose_nics does.
    static Result<Outcome> acquire(const Settings& settings, const topology::Machine& machine, const NicRequest& wanted,
                                   std::span<const ProcessId> processes, const HostTablePlace& place);

private:
    NicClaims(HostTablePlace place, std::uint64_t job);

    HostTablePlace place_;
    std::uint64_t job_ = 0;  // 0: nothing is claimed
    pid_t owner_ = 0;
};

struct NicClaims::Outcome {
    topology::Assignment assignment;
    NicClaims claims;
    std::string warning;  // empty: none
};

// The NICs of the PEs of this host, as start-up assigned them.
struct HostNics {
    bool in_use = false;                   // by a transport of some PE of the job
    std::string transport;                 // of this PE, that drives its NICs; empty: none does
    topology::Assignment assignment;       // of the PEs of this host; empty without `transport`
    std::vector<npushmem_device> devices;  // of the transport
};

// The step of start-up that assigns NICs to every PE: collective over the job, decided once per host. The referenced
// objects outlive it.
struct NicStep {
    const Settings& settings;
    Bootstrap& bootstrap;
    HostMemory& memory;
    const HostLayout& layout;
    std::span<const NamedTransport> transports;
    const PeTable& pes;
    int my_pe;
    bool may_be_needed;  // false: no PE of the job has a transport that drives NICs, as all PEs know

    struct Outcome {
        HostNics nics;
        NicClaims claims;     // held by the PE that made the assignment
        std::string warning;  // empty: none
    };

    // On each host, the first PE whose transports have NICs inspects the machine, assigns, and publishes the result in
    // the host's memory; the other PEs read it there. Each PE passes its NICs to its first transport that has any. If
    // no PE's transports have NICs, the machine is not inspected, but the user's NIC settings are still checked.
    Result<Outcome> run();

private:
    struct Need;
    Status apply_own(const NamedTransport& user, std::span<const npushmem_device> devices, Outcome& into) const;
    Result<NicClaims::Outcome> assign(const std::vector<int>& users, const std::vector<Need>& needs,
                                      std::span<const npushmem_device> devices) const;
};

}  // namespace npushmem
