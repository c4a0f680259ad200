// What the operating system says about this host and process. Read fresh at each call; nothing is cached.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/cpu_facts.hpp"
#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem {

std::string host_name();

// Identity by what decides whether two processes can map each other's memory: the boot of the machine, the process
// namespace through which descriptors are reached, the user, and the emulated host (-1: none). Never the host's name:
// containers share names, and a name says nothing of reach.
Result<npushmem_host_id> host_identity(int emulated_host);

// Bytes that can be committed now without swapping or being killed: the smaller of the machine's available memory and
// what the tightest control group still allows, version 2 or 1. File pages that a group can give back are not in use.
struct AvailableMemory {
    std::uint64_t available = 0;
    std::uint64_t total = 0;
    bool limited_by_group = false;  // a control group, not the machine, is the smaller
};
AvailableMemory available_memory();

// The same of what `read` gives for /proc/meminfo, /proc/self/cgroup and the files of the control groups.
AvailableMemory available_memory(const FileReader& read);

// A stable 64-bit hash of bytes (FNV-1a); not for secrets.
std::uint64_t hash_bytes(std::string_view bytes);

}  // namespace npushmem
