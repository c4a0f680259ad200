// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/binding.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "topology/machine/discovery.hpp"
#include "topology/machine/place.hpp"
#include "topology/policy/assign.hpp"

namespace npushmem::topology {
namespace {

std::vector<CpuSet> units_of(const Machine& machine, BindUnit unit) {
    std::vector<CpuSet> units;
    for (const auto& core : machine.cores) {
        if (unit == BindUnit::core) units.push_back(core.cpus);
        for (const unsigned cpu : core.cpus) {
            if (unit == BindUnit::hwthread) units.push_back({cpu});
        }
    }
    for (const auto& node : machine.numa_nodes) {
        if (unit == BindUnit::numa) units.push_back(node.cpus);
    }
    return units;
}

}  // namespace

std::vector<int> within(const CpuSet& cpus, const CpuSet& allowed) {
    std::vector<int> out;
    for (const unsigned cpu : cpus) {
        if (std::binary_search(allowed.begin(), allowed.end(), cpu)) out.push_back(static_cast<int>(cpu));
    }
    return out;
}

// Retries with a larger set while the kernel has more CPUs than the set holds.
Result<CpuSet> own_cpus() {
    for (std::size_t room = 1024; room <= (std::size_t{1} << 20); room *= 4) {
        std::vector<cpu_set_t> sets(room / CPU_SETSIZE);
        const std::size_t bytes = sets.size() * sizeof(cpu_set_t);
        if (::sched_getaffinity(0, bytes, sets.data()) == 0) {
            CpuSet cpus;
            for (unsigned cpu = 0; cpu < room; ++cpu) {
                if (CPU_ISSET_S(cpu, bytes, sets.data())) cpus.push_back(cpu);
            }
            return cpus;
        }
        if (errno != EINVAL) break;
    }
    return Status{Code::system, fmt::format("cannot read which CPUs this process may use: {}", std::strerror(errno))};
}

Result<std::vector<std::vector<int>>> allowed_units(BindUnit unit) {
    const auto machine = discover(Detail::cpus);
    if (!machine.ok()) return machine.status();
    const auto allowed = own_cpus();
    if (!allowed.ok()) return allowed.status();
    std::vector<std::vector<int>> out;
    for (const auto& cpus : units_of(machine.value(), unit)) {
        if (auto part = within(cpus, allowed.value()); !part.empty()) out.push_back(std::move(part));
    }
    if (out.empty()) return Status{Code::system, "hwloc finds no CPU that this process may use"};
    return out;
}

namespace {

// The NUMA node of the NIC that each NPU's PE would use; none for a PE without a NIC.
std::vector<std::optional<std::size_t>> nodes_of_nics(const Machine& machine, const std::vector<DevicePlace>& places) {
    AssignmentRequest request;
    request.pes = places;
    request.rails = rails_of(machine);
    const auto assignment = assign(machine, request);
    std::vector<std::optional<std::size_t>> nodes(places.size());
    if (!assignment.ok()) return nodes;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const auto& nics = assignment.value().pes[i].nics;
        if (!nics.empty()) nodes[i] = request.rails[nics.front().rail].location.numa;
    }
    return nodes;
}

std::vector<std::optional<std::size_t>> node_of_each(const Machine& machine, std::size_t npus) {
    const auto places = place_emulated(machine, npus);
    auto nodes = nodes_of_nics(machine, places);
    for (std::size_t i = 0; i < npus; ++i) {
        if (places[i].location.numa) nodes[i] = places[i].location.numa;
    }
    return nodes;
}

std::vector<std::vector<int>> cores_of(const Machine& machine, std::optional<std::size_t> node, const CpuSet& allowed) {
    std::vector<std::vector<int>> cores;
    for (const auto& core : machine.cores) {
        if (node && core.numa != node) continue;
        if (auto part = within(core.cpus, allowed); !part.empty()) cores.push_back(std::move(part));
    }
    return cores;
}

std::vector<int> share_of(const std::vector<std::vector<int>>& cores, std::size_t index, std::size_t count) {
    if (count > cores.size()) return cores[index % cores.size()];
    std::vector<int> out;
    for (std::size_t core = cores.size() * index / count; core < cores.size() * (index + 1) / count; ++core)
        out.insert(out.end(), cores[core].begin(), cores[core].end());
    return out;
}

Status nothing_near(const Machine& machine, std::size_t npu, std::optional<std::size_t> node, const CpuSet& allowed) {
    const auto near = node ? fmt::format("NUMA node {}, cpus {}", machine.numa_nodes[*node].os_index,
                                         describe(machine.numa_nodes[*node].cpus))
                           : std::string("no known NUMA node");
    return {Code::config,
            fmt::format("the device of PE {} is near {}, but this job may use none of these (it may use cpus "
                        "{}); allow them, or choose another binding",
                        npu, near, describe(allowed))};
}

}  // namespace

Result<std::vector<std::vector<int>>> cpus_near_devices(const Machine& machine, std::size_t npus,
                                                        const CpuSet& allowed) {
    const auto nodes = node_of_each(machine, npus);
    std::map<std::optional<std::size_t>, std::vector<std::size_t>> npus_of_node;
    for (std::size_t npu = 0; npu < npus; ++npu) npus_of_node[nodes[npu]].push_back(npu);
    std::vector<std::vector<int>> out(npus);
    for (const auto& [node, members] : npus_of_node) {
        const auto cores = cores_of(machine, node, allowed);
        if (cores.empty()) return nothing_near(machine, members.front(), node, allowed);
        for (std::size_t i = 0; i < members.size(); ++i) out[members[i]] = share_of(cores, i, members.size());
    }
    return out;
}

}  // namespace npushmem::topology
