#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "topology/describe.hpp"
#include "topology/text_table.hpp"

namespace npushmem::topology {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string headline(const Machine& machine) {
    return fmt::format("Machine {}({}): {}, {}, {}, {}\n", machine.host_name.empty() ? "" : machine.host_name + " ",
                       machine.source, counted(machine.packages.size(), "package"),
                       counted(machine.numa_nodes.size(), "NUMA node"), counted(machine.cores.size(), "core"),
                       counted(cpu_count(machine), "hardware thread"));
}

std::string size_text(std::uint64_t bytes) {
    const bool mega = bytes >= 1024 * 1024;
    return fmt::format("{:g} {}", static_cast<double>(bytes) / (mega ? 1024.0 * 1024.0 : 1024.0), mega ? "MiB" : "KiB");
}

// Level and size, and how many there are of it.
std::vector<std::tuple<unsigned, std::uint64_t, std::size_t>> kinds_of_caches(const Machine& machine) {
    std::vector<std::tuple<unsigned, std::uint64_t, std::size_t>> kinds;
    for (const auto& cache : machine.caches) {
        const bool same =
            !kinds.empty() && std::get<0>(kinds.back()) == cache.level && std::get<1>(kinds.back()) == cache.bytes;
        if (same) ++std::get<2>(kinds.back());
        if (!same) kinds.emplace_back(cache.level, cache.bytes, 1);
    }
    return kinds;
}

std::string processors(const Machine& machine) {
    Rows rows;
    for (const auto& package : machine.packages) {
        rows.push_back({fmt::format("package {}", package.os_index), "cpus " + describe(package.cpus), package.model});
    }
    for (const auto& node : machine.numa_nodes) {
        const double gibibytes = static_cast<double>(node.memory_bytes) / (1024.0 * 1024.0 * 1024.0);
        rows.push_back({fmt::format("NUMA node {}", node.os_index), "cpus " + describe(node.cpus),
                        fmt::format("{:.1f} GiB", gibibytes)});
    }
    for (const auto& [level, bytes, count] : kinds_of_caches(machine)) {
        rows.push_back({fmt::format("L{} cache", level), fmt::format("{} of {}", count, size_text(bytes))});
    }
    return render_table(rows, 2);
}

std::string numa_text(const Machine& machine, const std::optional<std::size_t>& numa) {
    return numa ? fmt::format("NUMA node {}", machine.numa_nodes[*numa].os_index) : "NUMA node unknown";
}

std::string port_text(const NicPort& port) {
    const auto rate = rate_text(port.bits_per_second);
    return fmt::format("port {} {}{}", port.number, name_of(port.state), rate.empty() ? "" : ", " + rate);
}

std::string nic_text(const Nic& nic) {
    std::string ports;
    for (const auto& port : nic.ports) ports += (ports.empty() ? "" : "; ") + port_text(port);
    return fmt::format("{}: {}", nic.kind == NicKind::rdma ? "verbs" : "network", ports);
}

class Forest {
public:
    explicit Forest(const Machine& machine) : machine_(machine) {}

    Rows rows() {
        for (std::size_t i = 0; i < machine_.pci.size(); ++i) append_object(i);
        for (const auto& nic : machine_.nics) {
            if (!nic.pci) append_nic(nic, 0);
        }
        return std::move(rows_);
    }

private:
    // Parents precede children, so that the order of the vector is already that of the drawing.
    void append_object(std::size_t index) {
        const auto& object = machine_.pci[index];
        const std::size_t depth = depth_of(object);
        rows_.push_back({fmt::format("{:{}}{} {}", "", 2 * depth, kind_text(index), object.address), detail(object)});
        for (const auto& nic : machine_.nics) {
            if (nic.pci == index) append_nic(nic, depth + 1);
        }
    }

    void append_nic(const Nic& nic, std::size_t depth) {
        rows_.push_back({fmt::format("{:{}}NIC {}", "", 2 * depth, nic.name), nic_text(nic)});
    }

    std::size_t depth_of(const PciObject& object) const {
        std::size_t depth = 0;
        for (auto parent = object.parent; parent; parent = machine_.pci[*parent].parent) ++depth;
        return depth;
    }

    std::string_view kind_text(std::size_t index) const {
        const auto& object = machine_.pci[index];
        if (object.kind == PciKind::host_bridge) return "host bridge";
        if (object.kind == PciKind::bridge) return "bridge";
        const bool computes = std::any_of(machine_.accelerators.begin(), machine_.accelerators.end(),
                                          [&](const Accelerator& accelerator) { return accelerator.pci == index; });
        return computes ? "accelerator" : "device";
    }

    std::string detail(const PciObject& object) const {
        if (object.kind == PciKind::host_bridge) return numa_text(machine_, object.numa);
        const auto link = rate_text(object.link_bits_per_second);
        return fmt::format("[{:04x}:{:04x}] class {:04x}{}", object.vendor, object.device, object.class_id,
                           link.empty() ? "" : ", link " + link);
    }

    const Machine& machine_;
    Rows rows_;
};

std::string no_nic(const Machine& machine) {
    if (!machine.devices_known) return "  PCI devices: not looked for\n";
    if (!machine.nics.empty()) return {};
    return "  no NIC: transports within one host (self, p2p) need none\n";
}

}  // namespace

std::string describe(const Machine& machine) {
    std::string out =
        headline(machine) + processors(machine) + render_table(Forest(machine).rows(), 2) + no_nic(machine);
    for (const auto& note : machine.notes) out += fmt::format("  note: {}\n", note);
    return out;
}

}  // namespace npushmem::topology
