// SPDX-License-Identifier: BSD-3-Clause
// Facts about this host and this process. Every call reads them fresh; nothing is cached.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem {

// CPU c is bit c % 64 of word c / 64. Plain words, so that PEs can exchange them.
using CpuMask = std::vector<std::uint64_t>;

struct CpuFacts {
    CpuMask affinity;
    double quota = 0.0;  // in cores; 0: the cgroup sets no limit
};

// Returns a file's content, or nothing when it cannot be read.
using FileReader = std::function<std::optional<std::string>(const std::string& path)>;

int count_cpus(const CpuMask& mask);

// Returns how many cores PEs with these masks can use together: the union of the masks, limited by the quota, at least
// 0.01. Pass the masks of all PEs of the host: the launcher may bind each PE to its own core.
double usable_cores(std::span<const CpuMask> masks, double quota);

// Returns the smallest quota, in cores, of the cgroups from the one named in `proc_self_cgroup` (the content of
// /proc/self/cgroup) up to the root, versions 2 and 1; 0 when there is none.
double cgroup_quota(std::string_view proc_self_cgroup, const FileReader& read);

// Parses cpu.max ("max 100000" or "150000 100000") into cores; 0 for no limit and for malformed text.
double parse_cpu_max(std::string_view text);

// Reads the facts of this process.
CpuFacts read_cpu_facts();
FileReader system_files();

std::string host_name();

// Identifies the processes that can map each other's memory through /proc: by the boot of the machine, the PID
// namespace (a random number if /proc is that of another one), the user and the emulated host (-1: none). Not by host
// name: containers share names, and equal names do not imply shared memory.
Result<npushmem_host_id> host_identity(int emulated_host);

// Bytes that can be committed now without swapping or an out-of-memory kill: the smaller of the machine's available
// memory and the tightest control group's remainder, version 2 or 1. File pages that a group can reclaim count as
// available.
struct AvailableMemory {
    std::uint64_t available = 0;
    std::uint64_t total = 0;
    bool limited_by_group = false;  // the control group's limit is the smaller one
};
AvailableMemory available_memory();

// The same, computed from the /proc/meminfo, /proc/self/cgroup and control group files that `read` returns.
AvailableMemory available_memory(const FileReader& read);

inline std::uint64_t page_bytes() {
    static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

// A huge page of machines with pages of 4 KiB. Others have larger ones.
inline constexpr std::uint64_t huge_page_bytes = 2ULL << 20;
// Returns whether `folder` is in a file system of huge pages (hugetlbfs); false for "".
bool is_mount_of_huge_pages(const std::string& folder);

// Returns the smallest multiple of `to` that is at least `value`, both in bytes. The sum must fit into 64 bits.
constexpr std::uint64_t rounded_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace npushmem
