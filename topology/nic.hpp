// A network interface of the machine, as a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npushmem::topology {

// rdma: a device of the verbs family (mlx5_0). network: an interface of the kernel's network stack (eth0).
enum class NicKind : std::uint8_t { rdma, network };

enum class PortState : std::uint8_t { unknown, down, active };

// "active", "down", "state unknown".
std::string_view name_of(PortState state);

struct NicPort {
    unsigned number = 1;  // as the system counts: from 1
    PortState state = PortState::unknown;
    std::uint64_t bits_per_second = 0;  // 0 when unknown
};

struct Nic {
    std::string name;
    NicKind kind = NicKind::network;
    std::optional<std::size_t> pci;   // index into Machine::pci
    std::optional<std::size_t> numa;  // index into Machine::numa_nodes
    std::vector<NicPort> ports;       // at least one
};

}  // namespace npushmem::topology
