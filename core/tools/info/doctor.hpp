// SPDX-License-Identifier: BSD-3-Clause
// npushmem-info --doctor: checks whether jobs can run on this machine as they are configured.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/plugin/plugin_catalogue.hpp"
#include "core/tools/info/reports.hpp"
#include "core/tools/info/system_facts.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::info {

// ok: nothing to do. note: jobs run, but something is missing, slow or limited. problem: jobs that are configured like
// this one fail, or behave otherwise than configured.
enum class Severity { ok, note, problem };

std::string_view name_of(Severity severity);

// The outcome of one check.
struct Check {
    std::string subject;  // "locked memory"
    Severity severity = Severity::ok;
    std::string found;    // with values
    std::string affects;  // what depends on it
    std::string remedy;   // what to change, as a command or a setting; empty: nothing. Optional if the severity is ok
};

// What the checks examine. All referenced objects outlive it.
struct Examined {
    const SystemFacts& system;
    const Settings& settings;
    std::span<const PluginEntry> plugins;
    std::span<const AbsentPlugin> absent;
    std::span<const std::string> plugin_folders;
    std::span<const Status> malformed;               // one for each malformed variable
    std::span<const std::string> unknown_variables;  // a sentence for each
    std::span<const Status> previews;                // failures of the previews of a job's choices
    int pes = 1;                                     // of the job, all on this host
};

// Returns the outcomes of all checks, in the order of the report.
std::vector<Check> examine(const Examined& examined);

std::size_t count(std::span<const Check> checks, Severity severity);
// Returns the first problem; null if there is none.
const Check* first_problem(std::span<const Check> checks);

// One line for each check; notes and problems have two more, with the effect and the remedy, and an optional remedy has
// one. The last line has the number of problems and notes.
std::string describe(std::span<const Check> checks);

// The transport that a job of several hosts like this one would use between hosts.
struct RemotePreview {
    std::string name;  // empty: none; "ucx or libfabric": a job compares the costs that these transports report
    std::string why;
};
RemotePreview preview_remote_transport(const Settings& settings, std::span<const PluginEntry> plugins,
                                       const SystemFacts& system);

// The checks, for tests. Each examines one subject.
Check check_installation(const Examined& examined);
Check check_hwloc(const Examined& examined);
std::vector<Check> check_variables(const Examined& examined);
std::vector<Check> check_previews(const Examined& examined);
Check check_plugin_folders(const Examined& examined);
std::vector<Check> check_plugins(const Examined& examined);
Check check_shared_memory(const Examined& examined);
Check check_heap_memory(const Examined& examined);
Check check_heap_folder(const Examined& examined);
Check check_shm(const Examined& examined);
Check check_address_space(const Examined& examined);
Check check_overcommit(const Examined& examined);
Check check_huge_pages(const Examined& examined);
Check check_cpus(const Examined& examined);
Check check_cpu_quota(const Examined& examined);
Check check_open_files(const Examined& examined);
Check check_processes(const Examined& examined);
Check check_kernel(const Examined& examined);
Check check_ptrace(const Examined& examined);
Check check_rdma(const Examined& examined);
Check check_locked_memory(const Examined& examined);
Check check_userfaultfd(const Examined& examined);
Check check_network(const Examined& examined);
Check check_launchers(const Examined& examined);

}  // namespace npushmem::info
