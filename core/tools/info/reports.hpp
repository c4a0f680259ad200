// The texts of npushmem-info, each a function of values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/plugin/plugin_catalogue.hpp"
#include "core/tools/info/job_view.hpp"
#include "topology/nic_claim.hpp"

namespace npushmem::info {

// Every variable with value, default, who set it and meaning, by subsystem; then the unknown ones. Values that a job
// keeps to itself are not shown.
std::string describe_variables(const Config& config);

// The folders searched, then every plugin file: what it is, or the stage and reason of its refusal.
std::string describe_plugins(const PluginCatalogue& catalogue, const std::vector<std::string>& folders);

// The machine, the NIC assignment of the first host's PEs, the transport map, and what jobs of this host use now: those
// of the machine with this key, then others.
std::string describe_topology(const JobView& job, std::span<const topology::NicClaim> claims, std::uint64_t machine);

// Who would carry out what kernels of `pes` PEs on `nodes` hosts of `cores` usable cores each do to PEs that are not
// mapped, and why.
std::string describe_kernels(const Settings& settings, int pes, int nodes, double cores);

// The barriers, and what NPUSHMEM_BARRIER_ALGO and the decision file choose for `pes` PEs on `nodes` hosts of `cores`
// usable cores each, all memory mapped when there is one host. Fails as the choice does.
Result<std::string> describe_barriers(const Settings& settings, int pes, int nodes, double cores);

std::string describe_version();

}  // namespace npushmem::info
