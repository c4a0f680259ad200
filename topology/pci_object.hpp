// One node of the machine's PCI forest. The roots are host bridges: the places where a tree hangs on a processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace npushmem::topology {

enum class PciKind : std::uint8_t { host_bridge, bridge, device };

struct PciObject {
    PciKind kind = PciKind::device;
    std::optional<std::size_t> parent;  // index into Machine::pci, always smaller than the own one; none for a root
    std::optional<std::size_t> numa;    // index into Machine::numa_nodes; none when the system does not say
    std::string address;                // "0000:3b:00.0"; of a host bridge the bus range, "0000:[3a-41]"
    std::uint16_t class_id = 0;         // PCI class and subclass, for instance 0x1200
    std::uint16_t vendor = 0;
    std::uint16_t device = 0;
    std::uint64_t link_bits_per_second = 0;  // of the link to the parent; 0 when unknown
};

}  // namespace npushmem::topology
