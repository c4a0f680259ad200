// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace npushmem::topology {
namespace {

// A place that emulated NPUs take in turn.
struct Slot {
    Location location;
    std::string why;
};

std::string numa_of(const Machine& machine, const std::optional<std::size_t>& numa) {
    return numa ? fmt::format("NUMA node {}", machine.numa_nodes[*numa].os_index) : "an unknown NUMA node";
}

std::vector<Slot> accelerator_slots(const Machine& machine) {
    std::vector<Slot> slots;
    for (const auto& accelerator : machine.accelerators) {
        slots.push_back({{accelerator.pci, accelerator.numa},
                         fmt::format("emulated, stands in for accelerator {}", machine.pci[accelerator.pci].address)});
    }
    return slots;
}

Slot host_bridge_slot(const Machine& machine, std::size_t pci) {
    const auto& bridge = machine.pci[pci];
    return {{pci, bridge.numa},
            fmt::format("emulated, at host bridge {} of {}", bridge.address, numa_of(machine, bridge.numa))};
}

// The first bridge of every NUMA node, then the second of every node, and so on.
std::vector<Slot> host_bridge_slots(const Machine& machine) {
    std::map<std::optional<std::size_t>, std::size_t> bridges_of_node;
    std::vector<std::pair<std::size_t, std::size_t>> turn_and_bridge;
    for (std::size_t i = 0; i < machine.pci.size(); ++i) {
        if (machine.pci[i].kind != PciKind::host_bridge) continue;
        turn_and_bridge.emplace_back(bridges_of_node[machine.pci[i].numa]++, i);
    }
    std::stable_sort(turn_and_bridge.begin(), turn_and_bridge.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Slot> slots;
    slots.reserve(turn_and_bridge.size());
    for (const auto& [turn, bridge] : turn_and_bridge) slots.push_back(host_bridge_slot(machine, bridge));
    return slots;
}

std::vector<Slot> numa_slots(const Machine& machine) {
    std::vector<Slot> slots;
    for (std::size_t i = 0; i < machine.numa_nodes.size(); ++i) {
        slots.push_back({{std::nullopt, i}, fmt::format("emulated, at {}", numa_of(machine, i))});
    }
    return slots;
}

std::string site_text(const Machine& machine, const NpuSite& site) {
    if (!site.pci) return numa_of(machine, site.numa);
    const auto& object = machine.pci[*site.pci];
    const auto kind = object.kind == PciKind::host_bridge ? "host bridge"
                      : object.kind == PciKind::bridge    ? "bridge"
                                                          : "device";
    return fmt::format("{} {}", kind, object.address);
}

std::vector<Slot> slots_of_file(const Machine& machine) {
    std::vector<Slot> slots;
    for (const auto& site : machine.npu_sites) {
        slots.push_back(
            {{site.pci, site.numa}, fmt::format("emulated, placed by the file at {}", site_text(machine, site))});
    }
    return slots;
}

std::vector<Slot> slots_of(const Machine& machine) {
    auto slots = slots_of_file(machine);
    if (slots.empty()) slots = accelerator_slots(machine);
    if (slots.empty()) slots = host_bridge_slots(machine);
    if (slots.empty()) slots = numa_slots(machine);
    if (slots.empty()) slots.push_back({{}, "emulated, at an unknown place"});
    return slots;
}

// Gives out the cores of each NUMA node in turn; a place with an unknown node takes from all cores.
class CoreRoundRobin {
public:
    explicit CoreRoundRobin(const Machine& machine) : machine_(machine) {}

    CpuSet next(const std::optional<std::size_t>& numa) {
        const auto near = cores_near(numa);
        if (near.empty()) return {};
        return machine_.cores[near[turn_of_node_[numa]++ % near.size()]].cpus;
    }

private:
    std::vector<std::size_t> cores_near(const std::optional<std::size_t>& numa) const {
        std::vector<std::size_t> near;
        for (std::size_t i = 0; i < machine_.cores.size(); ++i) {
            if (!numa || machine_.cores[i].numa == numa) near.push_back(i);
        }
        return near;
    }

    const Machine& machine_;
    std::map<std::optional<std::size_t>, std::size_t> turn_of_node_;
};

}  // namespace

std::vector<DevicePlace> place_emulated(const Machine& machine, std::size_t count) {
    const auto slots = slots_of(machine);
    CoreRoundRobin cores(machine);
    std::vector<DevicePlace> places;
    for (std::size_t i = 0; i < count; ++i) {
        const auto& slot = slots[i % slots.size()];
        const auto number = static_cast<std::uint32_t>(i);
        const std::size_t known = machine.npu_sites.empty() ? machine.accelerators.size() : machine.npu_sites.size();
        const std::size_t devices = known == 0 ? count : known;
        places.push_back(
            {slot.location, cores.next(slot.location.numa), slot.why, number, static_cast<std::uint32_t>(i % devices)});
    }
    return places;
}

std::vector<DevicePlace> place_emulated(const Machine& machine, std::span<const std::uint32_t> numbers) {
    std::size_t count = 0;
    for (const auto number : numbers) count = std::max<std::size_t>(count, number + std::size_t{1});
    const auto all = place_emulated(machine, count);
    std::vector<DevicePlace> places;
    for (const auto number : numbers) places.push_back(all[number]);
    return places;
}

}  // namespace npushmem::topology
