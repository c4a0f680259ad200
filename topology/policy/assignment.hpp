// SPDX-License-Identifier: BSD-3-Clause
// The result of assign(): the NICs of the PEs of one host with reasons. The first PE of a host computes it and shares
// it with the other PEs of the host as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/machine/distance.hpp"

namespace npushmem::topology {

// One NIC port of one PE.
struct NicChoice {
    std::string nic;
    std::uint32_t port = 1;
    std::uint32_t rail = 0;         // index into AssignmentRequest::rails
    std::uint32_t rail_number = 0;  // pairs ports of PEs: `rail`, or the number that the user gives
    DistanceClass distance = DistanceClass::sys;
    std::uint64_t bits_per_second = 0;       // of the port; 0 when unknown
    std::vector<std::uint32_t> shared_with;  // the other PEs of the host that use this port, by PeAssignment::pe
    std::uint32_t others = 0;                // PEs of other jobs on the host that use it

    friend bool operator==(const NicChoice&, const NicChoice&) = default;
};

// The NICs of the PE with the same local index. The first is the nearest; none when the host has no NIC.
struct PeAssignment {
    std::uint32_t pe = 0;  // its number in AssignmentRequest::pe_numbers
    std::string device;    // the place of its device, as a clause
    std::vector<NicChoice> nics;
    std::string reason;  // one sentence

    friend bool operator==(const PeAssignment&, const PeAssignment&) = default;
};

struct Assignment {
    std::string method;              // "balanced", "HCA_PE_MAPPING", ...
    std::vector<PeAssignment> pes;   // one per PE of the host, by local index
    std::vector<std::string> notes;  // for people: ports that are down, variables without effect

    friend bool operator==(const Assignment&, const Assignment&) = default;
};

// "mlx5_0:1".
std::string name_of(const NicChoice& nic);

// "PE 3", "PEs 3 and 4", "PEs 1, 2, 3 and 9 more".
std::string pes_text(const std::vector<std::uint32_t>& pes);

// The input of reason_of() besides the NICs.
struct ReasonFacts {
    // The start of the sentence when the user decided ("entry 1 \"mlx5_0:1:3\" of NPUSHMEM_HCA_PE_MAPPING gives it ");
    // empty when distance decided.
    std::string decided_by;
    std::size_t equally_near = 1;  // usable ports in the class of the first NIC, including itself
    bool place_known = true;       // of the device and the first NIC
    std::string nearer;            // a usable port of a better class, "mlx5_1:1 (PIX)"; empty when there is none
};

// Explains a PE's NICs in one sentence. `nics` is not empty.
std::string reason_of(const std::vector<NicChoice>& nics, const ReasonFacts& facts);

// Two PEs' NICs that are connected.
struct NicPair {
    NicChoice mine;
    NicChoice theirs;
    std::string why;  // "rail 0 on both ends"
};

// Pairs NICs by rail, as pair_rails does, before a transport reports its connections. Empty when either PE has no NIC.
std::vector<NicPair> pair_nics(const PeAssignment& mine, const PeAssignment& peer);

// Layout, all numbers little-endian: magic "NPTA", version u32, payload bytes u64, FNV-1a of the payload u64, payload.
// In the payload a text or list is its u32 length followed by its elements.
std::vector<std::byte> to_bytes(const Assignment& assignment);

// Fails with Code::protocol when the bytes are truncated, corrupt, of another version, or followed by others. Allocates
// at most a small multiple of the input's size, for any input.
Result<Assignment> assignment_from(std::span<const std::byte> bytes);

}  // namespace npushmem::topology
