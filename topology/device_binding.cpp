#include "topology/device_binding.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>

#include "topology/assign.hpp"
#include "topology/binding.hpp"
#include "topology/place.hpp"

namespace npushmem::topology {
namespace {

// The NUMA node of the NIC that each NPU's PE would use; none where it has no NIC.
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
                           : std::string("nowhere in particular");
    return {Code::config, fmt::format("the device of PE {} is near {}, of which this job may use none (it may use cpus "
                                      "{}); allow them, or bind otherwise",
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
