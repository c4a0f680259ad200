// Which NICs the PEs of this host get, from the user's settings, the machine, and what other jobs on the host use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/settings.hpp"
#include "npushmem/plugin/transport.hpp"
#include "topology/assignment.hpp"
#include "topology/machine.hpp"
#include "topology/nic_claim.hpp"
#include "topology/place.hpp"

namespace npushmem {

// The PEs of one job on this host that want NICs.
struct NicRequest {
    std::vector<int> pes;
    // The NPU of the host that each PE says it drives (NPUSHMEM_DEVICE); empty: none says so.
    std::vector<std::optional<std::uint32_t>> npus;
    // What the transport that will use the NICs offers; empty: the machine's own, for a report.
    std::span<const npushmem_device> devices;
};

struct NicChoices {
    topology::Assignment assignment;
    std::vector<topology::DevicePlace> places;  // of the PEs that `wanted` lists, in their order
};

// `others`: what other jobs say that they use. A machine without NICs gives an assignment without any, not a failure.
Result<NicChoices> choose_nics(const Settings& settings, const topology::Machine& machine, const NicRequest& wanted,
                               std::span<const topology::NicClaim> others);

}  // namespace npushmem
