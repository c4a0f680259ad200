// SPDX-License-Identifier: BSD-3-Clause
// The hosts and the CPUs that PEs run on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/host_facts.hpp"
#include "core/tools/run/options.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {

// Returns the emulated host of a PE, 0..nodes-1. Needs 0 <= pe < npes and 1 <= nodes <= npes. Sizes of hosts differ by
// at most one; with `block`, the first npes % nodes hosts are the larger ones and hold consecutive PEs.
int emulated_host_of(int pe, int npes, int nodes, MapBy map_by);

// The PEs of one host are evenly spaced in the job's numbering.
struct Numbering {
    int first = 0;
    int step = 1;

    [[nodiscard]] int of(int index) const { return first + index * step; }
};

struct HostPes {
    Numbering numbering;
    int count = 0;
};

// Returns the PEs of one of several hosts, by the rule of emulated_host_of. Needs 0 <= host < hosts <= npes.
HostPes pes_of_host(int host, int hosts, int npes, MapBy map_by);

using CpuList = std::vector<int>;

// Returns the CPUs that each PE may use; an empty list means "not bound". `units`: the CPUs of every core, hardware
// thread or NUMA node, in the machine's order; not empty.
//  - core, hwthread, numa: PE i gets unit i modulo the number of units
//  - share: neighbouring PEs get neighbouring, disjoint shares, whose sizes differ by one unit at most; with more PEs
//    than units as for core
//  - automatic: share with at least as many units as PEs, otherwise none
std::vector<CpuList> binding_plan(Bind bind, const std::vector<CpuList>& units, int npes);

// "0-3,8": for people.
std::string format_cpus(const CpuList& cpus);

// The hosts that a batch system has granted to the job in which npushmem-run was started.
struct Allocation {
    std::vector<std::string> hosts;  // each once, in the batch system's order
    std::vector<std::string> rsh;    // command that runs another one on a host; empty: use ssh
    std::string source;              // the variable that named the hosts
};

// "n[1-3,07],gpu-a[1-2]b" as Slurm writes lists of hosts; numbers keep their leading zeros. Code::argument names
// the place that cannot be parsed.
Result<std::vector<std::string>> expand_host_list(std::string_view text);

// Slurm (SLURM_JOB_NODELIST), PBS and its like (PBS_NODEFILE, a host a line) and LSF (LSB_HOSTS); nothing elsewhere. A
// list that cannot be read is an error: the job must not run on the first host only.
Result<std::optional<Allocation>> find_allocation(const Environment& environment, const FileReader& read);

// Spreads the job over the allocation, unless the command line says where it runs (--hosts, --nodes, --local) or there
// is one host only. With fewer PEs than hosts, the first hosts get one each.
Status use_allocation(Options& options, const Environment& environment, const FileReader& read);

}  // namespace npushmem::run
