#include "topology/machine.hpp"

#include <algorithm>

#include "core/base/parse.hpp"

namespace npushmem::topology {

std::optional<std::size_t> find_pci(const Machine& machine, std::string_view address) {
    std::string wanted = lowercase(address);
    if (std::count(wanted.begin(), wanted.end(), ':') == 1) wanted.insert(0, "0000:");
    const auto found = std::find_if(machine.pci.begin(), machine.pci.end(), [&](const PciObject& object) {
        return object.kind == PciKind::device && object.address == wanted;
    });
    if (found == machine.pci.end()) return std::nullopt;
    return static_cast<std::size_t>(found - machine.pci.begin());
}

std::uint32_t numa_distance(const Machine& machine, std::size_t from, std::size_t to) {
    if (from < machine.numa_distances.size() && to < machine.numa_distances[from].size()) {
        return machine.numa_distances[from][to];
    }
    if (from == to) return 10;
    const auto& package = machine.numa_nodes.at(from).package;
    return package && package == machine.numa_nodes.at(to).package ? 12 : 21;
}

std::size_t cpu_count(const Machine& machine) {
    std::size_t count = 0;
    for (const auto& core : machine.cores) count += core.cpus.size();
    return count;
}

}  // namespace npushmem::topology
