// A job as npushmem-info imagines it: hosts that are all like one machine, with the same number of PEs on each.
#pragma once

#include <string>
#include <vector>

#include "core/base/settings.hpp"
#include "npushmem/plugin/status.hpp"
#include "topology/assignment.hpp"
#include "topology/machine.hpp"
#include "topology/place.hpp"
#include "topology/rail.hpp"

namespace npushmem::info {

struct JobView {
    topology::Machine machine;
    std::vector<topology::Rail> rails;          // of each host, in the machine's order
    std::vector<topology::DevicePlace> places;  // of each host's PEs
    std::vector<topology::Assignment> hosts;    // PEs numbered through, block by block
    std::string local_transport;                // between PEs of a host; empty: none is selected
    std::string remote_transport;               // between hosts; empty: none is selected

    [[nodiscard]] const topology::PeAssignment& pe(std::size_t number) const {
        return hosts[number / places.size()].pes[number % places.size()];
    }
    [[nodiscard]] std::size_t pes() const { return hosts.size() * places.size(); }
};

// `pes` in all on `nodes` hosts; the last host's PEs are as many as the others'. Fails as the assignment does, and with
// Code::argument when the PEs cannot be dealt out evenly.
Result<JobView> view_job(const Settings& settings, int pes, int nodes);

// What PE 0 would use to reach each other PE, and why; peers that are alike share a line.
std::string describe_map(const JobView& job);

}  // namespace npushmem::info
