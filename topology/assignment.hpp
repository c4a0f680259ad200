// Which NICs the PEs of one host use, and why: the result of assign(), shared with all PEs of the host as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/distance.hpp"

namespace npushmem::topology {

// One NIC port of one PE.
struct NicChoice {
    std::string nic;
    std::uint32_t port = 1;
    std::uint32_t rail = 0;         // index into the rails that assign() was given
    std::uint32_t rail_number = 0;  // by which ports of PEs are paired: that index, unless the user gives another
    DistanceClass distance = DistanceClass::sys;
    std::uint64_t bits_per_second = 0;       // of the port; 0 when unknown
    std::vector<std::uint32_t> shared_with;  // the other PEs of the host that use this port, by PeAssignment::pe
    std::uint32_t others = 0;                // PEs of other jobs on the host that use it

    friend bool operator==(const NicChoice&, const NicChoice&) = default;
};

// The NICs of the PE with the same local index. The first is the nearest; none when the host has no NIC.
struct PeAssignment {
    std::uint32_t pe = 0;  // its number in AssignmentRequest::pe_numbers
    std::string device;    // where its device sits, as a clause
    std::vector<NicChoice> nics;
    std::string reason;  // one sentence

    friend bool operator==(const PeAssignment&, const PeAssignment&) = default;
};

struct Assignment {
    std::string method;              // "balanced", "HCA_PE_MAPPING", ...
    std::vector<PeAssignment> pes;   // one per PE of the host, by local index
    std::vector<std::string> notes;  // what a person should know: ports that are down, variables without effect

    friend bool operator==(const Assignment&, const Assignment&) = default;
};

}  // namespace npushmem::topology
