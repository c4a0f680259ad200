// SPDX-License-Identifier: BSD-3-Clause
// The job that npushmem-info describes: all hosts are like one machine, and npushmem-run --nodes assigns the PEs.
#pragma once

#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "npushmem/plugin/status.hpp"
#include "topology/machine/machine.hpp"
#include "topology/machine/place.hpp"
#include "topology/machine/rail.hpp"
#include "topology/policy/assignment.hpp"

namespace npushmem::info {

struct JobView {
    topology::Machine machine;
    std::vector<topology::Rail> rails;          // of each host, in the machine's order
    std::vector<std::uint32_t> rail_numbers;    // of these rails, see topology::rail_numbers
    std::vector<topology::DevicePlace> places;  // of the first host's PEs; no host has more PEs
    std::vector<topology::Assignment> hosts;    // PE numbers continue from host to host
    std::string local_transport;                // between PEs of a host; empty: none is selected
    std::string remote_transport;               // between hosts; empty: none is selected

    // `number` is less than pes().
    [[nodiscard]] const topology::PeAssignment& pe(std::size_t number) const;
    [[nodiscard]] std::size_t pes() const;
};

// `pes` PEs on `nodes` hosts, in blocks whose sizes differ by one PE at most, the larger ones first. Returns the errors
// of the NIC assignment, and Code::argument if there are fewer PEs than hosts.
Result<JobView> view_job(const Settings& settings, int pes, int nodes);

// The route from PE 0 to some PEs that are reached alike.
struct RouteLine {
    std::vector<std::uint32_t> pes;
    std::string transport;  // "self", "none"
    std::string nics;       // of both ends; empty: no NIC
    std::string why;
};

// In the order of the first PE of each line.
std::vector<RouteLine> routes_of(const JobView& job);

// Describes the transport from PE 0 to each other PE, and why it is used; similar peers share a line.
std::string describe_map(const JobView& job);

}  // namespace npushmem::info
