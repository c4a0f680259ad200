// The hosts that a batch system has granted to the job in which npushmem-run was started.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cpu_facts.hpp"
#include "core/base/environment.hpp"
#include "core/tools/run/options.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {

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
