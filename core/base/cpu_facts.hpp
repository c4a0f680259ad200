// How much processor this process may use: the affinity mask and the cgroup's quota.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace npushmem {

// CPU c is bit c % 64 of word c / 64. Plain words, so that PEs can exchange them.
using CpuMask = std::vector<std::uint64_t>;

struct CpuFacts {
    CpuMask affinity;
    double quota = 0.0;  // cores' worth of time that the cgroup grants; 0 when unlimited
};

// A file's content, or nothing when it cannot be read.
using FileReader = std::function<std::optional<std::string>(const std::string& path)>;

int count_cpus(const CpuMask& mask);

// The cores that PEs with these masks can use together: the union of the masks, cut by the quota, never below a
// fraction that would be meaningless (0.01). The launcher may bind each PE to a core of its own, so one PE's mask says
// nothing about the host; give those of all PEs of the host.
double usable_cores(std::span<const CpuMask> masks, double quota);

// The tightest quota from the cgroup that `proc_self_cgroup` (content of /proc/self/cgroup) names up to the root,
// version 2 and version 1; 0 when there is none.
double cgroup_quota(std::string_view proc_self_cgroup, const FileReader& read);

// "max 100000" or "150000 100000" (cpu.max): cores; 0 for no limit and for what is no quota.
double parse_cpu_max(std::string_view text);

// Of this process, now.
CpuFacts read_cpu_facts();
FileReader system_files();

}  // namespace npushmem
