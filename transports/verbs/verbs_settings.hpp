// What the user chose for the verbs transport.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/nic_rails.hpp"
#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"
#include "transports/verbs/gid_range.hpp"

namespace npushmem::verbs {

enum class AddressFamily { ipv4, ipv6 };

// Who carries out 64-bit additions and compare-and-swap?
enum class NativeAtomics {
    never,        // the target's CPU
    if_coherent,  // the NIC, where it says that its atomics are atomic with the CPU's
    always,       // the NIC: the user knows that no CPU touches the words that NICs do
};

struct VerbsSettings {
    int gid_index = -1;  // -1: by RoCE version and address family
    int roce_version = 2;
    AddressFamily family = AddressFamily::ipv4;
    std::optional<GidRange> range;  // in place of the family
    std::uint8_t service_level = 0;
    std::uint8_t traffic_class = 0;
    std::uint16_t pkey = 0;  // 0: the first of the port
    int mtu = 0;             // bytes; 0: the port's
    std::uint8_t retry_count = 7;
    std::uint8_t timeout = 14;                  // 4.096 us times two to this power
    std::uint32_t queue_depth = 1024;           // work requests
    std::uint64_t chunk_bytes = 4ULL << 20;     // of memory that is registered at a time
    std::uint64_t stripe_bytes = 256ULL << 10;  // from so many on, over all ports; 0: never
    std::uint64_t cache_bytes = 256ULL << 20;   // of the program's memory that stay registered; 0: none
    NativeAtomics atomics = NativeAtomics::if_coherent;
    std::vector<NicRailEntry> nic_rails;  // of this host's ports
};

// The error names the variable, its value and what is accepted.
Result<VerbsSettings> read_verbs_settings(const Host& host);

}  // namespace npushmem::verbs
