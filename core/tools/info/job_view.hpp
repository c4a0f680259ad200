// A job as npushmem-info imagines it: hosts that are all like one machine, with as many PEs on each as npushmem-run
// --nodes gives it.
#pragma once

#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "npushmem/plugin/status.hpp"
#include "topology/assignment.hpp"
#include "topology/machine.hpp"
#include "topology/place.hpp"
#include "topology/rail.hpp"

namespace npushmem::info {

struct JobView {
    topology::Machine machine;
    std::vector<topology::Rail> rails;          // of each host, in the machine's order
    std::vector<std::uint32_t> rail_numbers;    // of these rails, see topology::rail_numbers
    std::vector<topology::DevicePlace> places;  // of the first host's PEs, of which no host has more
    std::vector<topology::Assignment> hosts;    // PEs numbered through, block by block
    std::string local_transport;                // between PEs of a host; empty: none is selected
    std::string remote_transport;               // between hosts; empty: none is selected

    // `number` is less than pes().
    [[nodiscard]] const topology::PeAssignment& pe(std::size_t number) const;
    [[nodiscard]] std::size_t pes() const;
};

// `pes` in all on `nodes` hosts, in blocks that differ by one PE at most, the larger ones first. Fails as the
// assignment does, and with Code::argument when there are fewer PEs than hosts.
Result<JobView> view_job(const Settings& settings, int pes, int nodes);

// What PE 0 would use to reach each other PE, and why; peers that are alike share a line.
std::string describe_map(const JobView& job);

}  // namespace npushmem::info
