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

// Which emulated host a PE lives on: a pure function.

// 0..nodes-1. Needs 0 <= pe < npes and 1 <= nodes <= npes. Sizes of hosts differ by at most one; with `block`, the
// first npes % nodes hosts are the larger ones and hold consecutive PEs.
int emulated_host_of(int pe, int npes, int nodes, MapBy map_by);

// Which PEs of a job on several hosts are one host's: a pure function.

// A host's PEs are evenly spaced in the job's numbering.
struct Numbering {
    int first = 0;
    int step = 1;

    [[nodiscard]] int of(int index) const { return first + index * step; }
};

struct HostPes {
    Numbering numbering;
    int count = 0;
};

// Needs 0 <= host < hosts <= npes. Dealt as emulated_host_of deals PEs.
HostPes pes_of_host(int host, int hosts, int npes, MapBy map_by);

// Which CPUs a PE may use: a pure function of the machine's units.

using CpuList = std::vector<int>;

// `units`: the CPUs of every core, hardware thread or NUMA node, in the machine's order; not empty. The result has one
// list for each PE; an empty list means "not bound".
//  - core, hwthread, numa: PE i gets unit i, starting over when they are used up
//  - share: neighbouring PEs get neighbouring, disjoint parts, whose sizes differ by one unit at most; with more PEs
//  than
//    units as for core
//  - automatic: share with at least as many units as PEs, otherwise none
std::vector<CpuList> binding_plan(Bind bind, const std::vector<CpuList>& units, int npes);

// "0-3,8": for people.
std::string format_cpus(const CpuList& cpus);

// The hosts that a batch system has granted to the job in which npushmem-run was started.
struct Allocation {
    std::vector<std::string> hosts;  // each once, in the batch system's order
    std::vector<std::string> rsh;    // what runs a command on one of them; empty: nothing better than ssh
    std::string source;              // the variable that told
};

// "n[1-3,07],gpu-a[1-2]b" as Slurm writes lists of hosts; numbers keep their leading zeros. Code::argument with the
// place of what cannot be understood.
Result<std::vector<std::string>> expand_host_list(std::string_view text);

// Slurm (SLURM_JOB_NODELIST), PBS and its like (PBS_NODEFILE, a host a line) and LSF (LSB_HOSTS); nothing elsewhere. A
// list that cannot be read is a failure: running everything on the first host is not what was asked for.
Result<std::optional<Allocation>> find_allocation(const Environment& environment, const FileReader& read);

// Spreads the job over the allocation, unless the command line says where it runs (--hosts, --nodes, --local) or there
// is one host only. With fewer PEs than hosts, the first hosts get one each.
Status use_allocation(Options& options, const Environment& environment, const FileReader& read);

}  // namespace npushmem::run
