#include "core/tools/info/device_tree.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace npushmem::info {

namespace {

using topology::PciKind;

// Without the domain that nearly every machine has.
std::string short_address(const std::string& address) {
    return address.starts_with("0000:") ? address.substr(5) : address;
}

class Builder {
public:
    explicit Builder(const JobView& job) : job_(job), machine_(job.machine) {}

    // Everything whose NUMA node is this one.
    DeviceTree of_node(std::optional<std::size_t> node, std::string label) const {
        DeviceTree tree;
        tree.label = std::move(label);
        add_npus(
            tree, [&](const topology::Location& location) { return !location.pci && location.numa == node; },
            "emulated NPUs");
        add_nics(tree, [&](const topology::Location& location) { return !location.pci && location.numa == node; });
        for (std::size_t i = 0; i < machine_.pci.size(); ++i) {
            if (!machine_.pci[i].parent && machine_.pci[i].numa == node) absorb(tree, of_object(i));
        }
        return tree;
    }

private:
    DeviceTree of_object(std::size_t index) const {
        const auto& object = machine_.pci[index];
        DeviceTree tree;
        const auto here = [&](const topology::Location& location) { return location.pci == index; };
        const bool accelerator = is_accelerator(index);
        add_npus(tree, here, accelerator ? "accelerator " + short_address(object.address) : "emulated NPUs");
        if (tree.npus.empty() && accelerator) tree.npus.push_back({"accelerator " + short_address(object.address), {}});
        add_nics(tree, here);
        for (std::size_t child = index + 1; child < machine_.pci.size(); ++child) {
            if (machine_.pci[child].parent == index) absorb(tree, of_object(child));
        }
        tree.label = label_of(object);
        return tree;
    }

    static std::string label_of(const topology::PciObject& object) {
        if (object.kind == PciKind::host_bridge) return "host bridge " + short_address(object.address);
        return (object.kind == PciKind::bridge ? "PCIe switch " : "device ") + short_address(object.address);
    }

    // A part with one thing in it is no group; neither is one that holds nothing but another group.
    static void absorb(DeviceTree& into, DeviceTree part) {
        const std::size_t leaves = part.npus.size() + part.nics.size();
        if (leaves == 0 || (leaves == 1 && part.groups.empty())) {
            std::move(part.npus.begin(), part.npus.end(), std::back_inserter(into.npus));
            std::move(part.nics.begin(), part.nics.end(), std::back_inserter(into.nics));
            std::move(part.groups.begin(), part.groups.end(), std::back_inserter(into.groups));
        } else {
            into.groups.push_back(std::move(part));
        }
    }

    template <class Here>
    void add_npus(DeviceTree& tree, Here here, const std::string& label) const {
        NpuLeaf leaf{label, {}};
        for (std::size_t i = 0; i < job_.places.size(); ++i) {
            if (here(job_.places[i].location)) leaf.places.push_back(i);
        }
        if (!leaf.places.empty()) tree.npus.push_back(std::move(leaf));
    }

    template <class Here>
    void add_nics(DeviceTree& tree, Here here) const {
        for (std::size_t i = 0; i < job_.rails.size(); ++i) {
            if (here(job_.rails[i].location)) tree.nics.push_back({i});
        }
    }

    bool is_accelerator(std::size_t pci) const {
        return std::any_of(machine_.accelerators.begin(), machine_.accelerators.end(),
                           [&](const auto& accelerator) { return accelerator.pci == pci; });
    }

    const JobView& job_;
    const topology::Machine& machine_;
};

std::string label_of_node(const topology::Machine& machine, std::size_t node) {
    const auto& numa = machine.numa_nodes[node];
    const std::string package =
        numa.package ? fmt::format(", package {}", machine.packages[*numa.package].os_index) : std::string();
    return fmt::format("NUMA node {}{}, cpus {}", numa.os_index, package, topology::describe(numa.cpus));
}

}  // namespace

std::vector<DeviceTree> device_trees(const JobView& job) {
    const Builder builder(job);
    std::vector<DeviceTree> trees;
    for (std::size_t node = 0; node < job.machine.numa_nodes.size(); ++node) {
        trees.push_back(builder.of_node(node, label_of_node(job.machine, node)));
    }
    trees.push_back(builder.of_node(std::nullopt, "NUMA node unknown"));
    std::erase_if(trees, [](const DeviceTree& tree) { return tree.empty(); });
    return trees;
}

}  // namespace npushmem::info
