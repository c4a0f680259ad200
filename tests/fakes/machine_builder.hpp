// SPDX-License-Identifier: BSD-3-Clause
// Machines for tests, built part by part, and cost tables. Addresses ascend, so that parts sort in the order of their
// creation.
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "topology/machine/distance.hpp"
#include "topology/machine/machine.hpp"

namespace npushmem::topology {

class MachineBuilder {
public:
    // A package of `numa_nodes` NUMA nodes with `cores` cores of one hardware thread each; returns its first node.
    std::size_t package(std::size_t numa_nodes = 1, std::size_t cores = 1) {
        const std::size_t first = machine_.numa_nodes.size();
        machine_.packages.push_back({static_cast<unsigned>(machine_.packages.size()), "Synthetic CPU", {}});
        for (std::size_t i = 0; i < numa_nodes; ++i) add_node(cores);
        return first;
    }
    std::size_t host_bridge(std::optional<std::size_t> numa) {
        return add({PciKind::host_bridge, std::nullopt, numa, fmt::format("0000:[{:02x}-{:02x}]", bus_, bus_)});
    }
    std::size_t bridge(std::size_t parent) { return add(object(PciKind::bridge, parent)); }
    // A switch: an upstream port, and one downstream port per call of port().
    std::size_t pcie_switch(std::size_t parent) { return bridge(parent); }
    std::size_t port(std::size_t of_switch) { return bridge(of_switch); }

    // A device directly below `parent`; returns its index in Machine::pci.
    std::size_t accelerator(std::size_t parent, std::uint64_t link = 0) {
        const std::size_t pci = add_device(parent, 0x1200, link);
        machine_.accelerators.push_back({pci, machine_.pci[pci].numa});
        return pci;
    }
    std::size_t nic(std::size_t parent, const std::string& name,
                    std::vector<NicPort> ports = {{1, PortState::active, 0}}, NicKind kind = NicKind::rdma,
                    std::uint64_t link = 0) {
        const std::size_t pci = add_device(parent, 0x0207, link);
        machine_.nics.push_back({name, kind, pci, machine_.pci[pci].numa, std::move(ports)});
        return pci;
    }
    MachineBuilder& numa_distances(std::vector<std::vector<std::uint32_t>> distances) {
        machine_.numa_distances = std::move(distances);
        return *this;
    }
    [[nodiscard]] const Machine& machine() const { return machine_; }

private:
    void add_node(std::size_t cores) {
        const std::size_t package = machine_.packages.size() - 1;
        const std::size_t numa = machine_.numa_nodes.size();
        NumaNode node{static_cast<unsigned>(numa), std::uint64_t{1} << 30, package, {}};
        for (std::size_t i = 0; i < cores; ++i) {
            node.cpus.push_back(cpu_);
            machine_.packages[package].cpus.push_back(cpu_);
            machine_.cores.push_back({package, numa, {cpu_++}});
        }
        machine_.numa_nodes.push_back(std::move(node));
    }
    PciObject object(PciKind kind, std::size_t parent) {
        return {kind, parent, machine_.pci[parent].numa, fmt::format("0000:{:02x}:00.0", bus_)};
    }
    std::size_t add(PciObject object) {
        ++bus_;
        machine_.pci.push_back(std::move(object));
        return machine_.pci.size() - 1;
    }
    std::size_t add_device(std::size_t parent, std::uint16_t class_id, std::uint64_t link) {
        PciObject out = object(PciKind::device, parent);
        out.class_id = class_id;
        out.link_bits_per_second = link;
        return add(std::move(out));
    }

    Machine machine_;
    unsigned bus_ = 0;
    unsigned cpu_ = 0;
};

// Cost tables for tests: written by hand, or drawn from a seeded generator.

// A table of classes, each number one DistanceClass (0 is PIX); ranks follow the classes.
inline CostTable table_of_classes(const std::vector<std::vector<int>>& classes) {
    std::vector<std::vector<Distance>> distances;
    for (const auto& row : classes) {
        auto& out = distances.emplace_back();
        for (const int value : row) out.push_back({static_cast<DistanceClass>(value), 0, 0});
    }
    return rank_distances(distances);
}

// Few classes and few bandwidths make equal entries common.
inline CostTable random_table(std::mt19937& random, std::size_t rows, std::size_t columns) {
    std::vector<std::vector<Distance>> distances(rows, std::vector<Distance>(columns));
    for (auto& row : distances) {
        for (auto& entry : row) entry = {static_cast<DistanceClass>(random() % 3), random() % 2 + 1, 0};
    }
    return rank_distances(distances);
}

}  // namespace npushmem::topology
