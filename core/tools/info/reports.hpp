// SPDX-License-Identifier: BSD-3-Clause
// Reports of npushmem-info as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/plugin/plugin_catalogue.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/tools/info/job_view.hpp"
#include "topology/policy/nic_claim.hpp"

namespace npushmem::info {

// Lists every variable by subsystem, with value, default, origin and meaning; then unknown variables. Secrets of a job
// are not shown.
std::string describe_variables(const Config& config);

// Lists the folders that are searched, then every plugin file with its description, or the stage and reason of its
// refusal.
std::string describe_plugins(const PluginCatalogue& catalogue, const std::vector<std::string>& folders);

// Describes the machine, the NIC assignment of the first host's PEs, the transport map, and the NICs that jobs use now:
// first on the machine with this key, then on others.
std::string describe_topology(const JobView& job, std::span<const topology::NicClaim> claims, std::uint64_t machine);

// Describes how kernels of `pes` PEs on `nodes` hosts of `cores` usable cores each reach PEs that are not mapped, and
// why.
std::string describe_kernels(const Settings& settings, int pes, int nodes, double cores);

// Lists the barriers, and the one that NPUSHMEM_BARRIER_ALGO and the decision file choose for `pes` PEs on `nodes`
// hosts of `cores` usable cores each. With one host all memory is mapped. Returns the errors of that choice.
Result<std::string> describe_barriers(const Settings& settings, int pes, int nodes, double cores);

std::string describe_version();

// Returns the man page npushmem-variables(7): every variable with its values, default and meaning. The values in effect
// are not part of it.
std::string variables_page(const Config& config);

// A plugin that could not be built, with the reason. The build writes a list of them next to the plugins.
struct AbsentPlugin {
    PluginKind kind;
    std::string name;
    std::string why;
};

// Reads the lists of all folders; a folder without a list is empty.
std::vector<AbsentPlugin> absent_plugins(const std::vector<std::string>& folders);

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
