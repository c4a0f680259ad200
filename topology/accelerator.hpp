// An accelerator of the machine, found by its PCI class and vendor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace npushmem::topology {

struct Accelerator {
    std::size_t pci = 0;              // index into Machine::pci
    std::optional<std::size_t> numa;  // index into Machine::numa_nodes
};

// Where a file says that an emulated NPU sits; neither: nowhere in particular.
struct NpuSite {
    std::optional<std::size_t> pci;   // index into Machine::pci
    std::optional<std::size_t> numa;  // index into Machine::numa_nodes
};

// Whether a PCI device of this class and vendor computes: "processing accelerator" of any vendor, and the display
// classes of vendors whose server accelerators announce themselves there.
bool is_accelerator(std::uint16_t class_id, std::uint16_t vendor);

}  // namespace npushmem::topology
