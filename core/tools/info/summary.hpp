// SPDX-License-Identifier: BSD-3-Clause
// What npushmem-info prints without arguments: one screen about this machine, what a job here would choose, and whether
// it can run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/tools/info/doctor.hpp"
#include "core/tools/info/job_view.hpp"
#include "core/tools/info/reports.hpp"
#include "core/tools/info/system_facts.hpp"

namespace npushmem::info {

// The plugins of one kind, by name.
struct PluginNames {
    std::vector<std::string> found;
    std::vector<std::string> absent;
    std::vector<std::string> refused;
};

// What a job whose PEs all run on this host would choose.
struct JobPreview {
    int pes = 1;
    std::vector<RouteLine> routes;  // of PE 0; empty: the preview failed
    RemotePreview remote;           // in a job of several hosts like this one
    std::string barrier;            // with the reason; empty: the preview failed
    std::vector<topology::PeAssignment> nics;
};

struct Summary {
    std::string library;  // path; empty: not found
    std::vector<std::string> plugin_folders;
    std::string host_name;
    double usable_cores = 1;
    int cpus = 1;
    AvailableMemory memory;
    std::string kernel;
    std::vector<std::string> nics;  // "mlx5_0 (verbs, active)"
    std::size_t accelerators = 0;   // that NPUs stand in for; 0: NPUs are emulated on CPUs only
    PluginNames transports;
    PluginNames bootstraps;
    PluginNames collectives;
    JobPreview job;
    std::vector<std::string> variables;  // full names of those that are set
    std::vector<std::string> unknown;    // full names of those that nothing reads
    std::size_t problems = 0;
    std::size_t notes = 0;
    std::string first_problem;  // empty: a job can run
};

// What the summary is made of; all referenced objects outlive it.
struct SummarySources {
    const Config& config;
    const std::vector<std::string>& unknown;  // full names
    const PluginReport& plugins;
    const SystemFacts& system;
    const JobView* job;            // null: the preview failed
    const BarrierReport* barrier;  // likewise
    std::span<const Check> checks;
    int pes = 1;
};
Summary summarise(const SummarySources& sources);

// At most 24 lines of at most 100 columns; longer lines are cut and end in "...". The last line has the verdict.
std::string describe(const Summary& summary);

}  // namespace npushmem::info
