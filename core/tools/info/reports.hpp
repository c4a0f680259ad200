// SPDX-License-Identifier: BSD-3-Clause
// Reports of npushmem-info as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/coll/barrier/algorithms.hpp"
#include "core/plugin/plugin_catalogue.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/runtime/job_transports.hpp"
#include "core/tools/info/job_view.hpp"
#include "topology/policy/nic_claim.hpp"

namespace npushmem::info {

// Lists every variable by subsystem, with value, default, origin and meaning; then unknown variables. Secrets of a job
// are not shown.
std::string describe_variables(const Config& config);

// Returns the man page npushmem-variables(7): every variable with its values, default and meaning. The values in effect
// are not part of it.
std::string variables_page(const Config& config);

struct PluginReport {
    std::vector<std::string> folders;  // in the order of the search
    std::vector<PluginEntry> entries;
    std::vector<AbsentPlugin> absent;  // without those that an entry has
};

PluginReport report_plugins(const PluginCatalogue& catalogue, const std::vector<std::string>& folders);
// Lists the folders that are searched, then every plugin file with its description, or the stage and reason of its
// refusal.
std::string describe(const PluginReport& report);

struct TopologyReport {
    JobView job;
    std::vector<topology::NicClaim> claims;  // of all jobs on this host
    std::uint64_t machine_key = 0;           // claims with another key are on other machines
    RemoteModeChoice kernels;
};

// Describes the machine, the NIC assignment of the first host's PEs, the transport map, the NICs that jobs use now
// (first on this machine, then on others), and how kernels reach PEs that are not mapped.
std::string describe(const TopologyReport& report);

// Chooses how kernels of `pes` PEs on `nodes` hosts of `cores` usable cores each reach PEs that are not mapped.
RemoteModeChoice preview_kernels(const Settings& settings, int pes, int nodes, double cores);

struct BarrierReport {
    barrier::Choice choice;
    int pes = 1;
    int nodes = 1;
    double cores = 1;  // usable ones of a host
};

// The barrier that NPUSHMEM_BARRIER_ALGO and the decision file choose for `pes` PEs on `nodes` hosts of `cores` usable
// cores each. With one host all memory is mapped. Returns the errors of that choice.
Result<BarrierReport> preview_barrier(const Settings& settings, int pes, int nodes, double cores);
// Lists the barriers, and the chosen one.
std::string describe(const BarrierReport& report);

std::string describe_version();

// The devices of a machine that a drawing shows: the places of PEs and NICs, grouped by the bridges that separate them.
// Other bridges are left out.

// NPUs at one place.
struct NpuLeaf {
    std::string label;                // "accelerator 03:00.0"
    std::vector<std::size_t> places;  // indices into JobView::places; empty: idle
};

struct NicLeaf {
    std::size_t rail = 0;  // index into JobView::rails
};

struct DeviceTree {
    std::string label;  // "NUMA node 0", "PCIe switch 01:00.0"
    std::vector<NpuLeaf> npus;
    std::vector<NicLeaf> nics;
    std::vector<DeviceTree> groups;

    [[nodiscard]] bool empty() const { return npus.empty() && nics.empty() && groups.empty(); }
};

// Returns one tree for each NUMA node with devices, in order; then one for the devices whose node is unknown.
std::vector<DeviceTree> device_trees(const JobView& job);

}  // namespace npushmem::info
