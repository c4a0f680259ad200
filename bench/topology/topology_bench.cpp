// SPDX-License-Identifier: BSD-3-Clause
// Times NIC assignments for many PEs (the default policy and NVSHMEM's two greedy passes, on machines of different
// shapes), and discovery plus assignment on this machine compared with hwloc alone.
#include <benchmark/benchmark.h>
#include <hwloc.h>

#include "tests/fakes/machine_builder.hpp"
#include "topology/machine/discovery.hpp"
#include "topology/policy/assign.hpp"

namespace npushmem::topology {
namespace {

constexpr std::size_t max_pes = 1024;
constexpr std::size_t max_nics = 64;

// Everything is behind one host bridge: every PE may use every NIC, so the search is the largest.
Machine flat(std::size_t pes, std::size_t nics) {
    MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package());
    for (std::size_t i = 0; i < pes; ++i) builder.accelerator(host);
    for (std::size_t i = 0; i < nics; ++i) builder.nic(host, "mlx5_" + std::to_string(i));
    return builder.machine();
}

// One switch per NIC, on two sockets: distance leaves few choices.
Machine switched(std::size_t pes, std::size_t nics) {
    MachineBuilder builder;
    for (std::size_t i = 0; i < nics; ++i) {
        const auto numa = i % (nics / 2 + 1) == 0 ? builder.package() : builder.machine().numa_nodes.size() - 1;
        const auto upstream = builder.pcie_switch(builder.host_bridge(numa));
        builder.nic(builder.port(upstream), "mlx5_" + std::to_string(i));
        for (std::size_t k = 0; k < pes / nics; ++k) builder.accelerator(builder.port(upstream));
    }
    return builder.machine();
}

// Like flat(), with ports of different speeds, so loads are weighted.
Machine uneven(std::size_t pes, std::size_t nics) {
    MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package());
    for (std::size_t i = 0; i < pes; ++i) builder.accelerator(host);
    for (std::size_t i = 0; i < nics; ++i)
        builder.nic(host, "mlx5_" + std::to_string(i), {{1, PortState::active, 100'000'000'000 * (1 + i % 4)}});
    return builder.machine();
}

template <Machine (*Make)(std::size_t, std::size_t), Policy policy>
void assign_all(benchmark::State& state) {
    const Machine machine = Make(max_pes, max_nics);
    AssignmentRequest request;
    request.pes = place_emulated(machine, max_pes);
    request.rails = rails_of(machine);
    request.policy = policy;
    for (auto _ : state) {
        auto assignment = assign(machine, request);
        if (!assignment.ok()) state.SkipWithError(assignment.status().message().c_str());
        benchmark::DoNotOptimize(assignment);
    }
}

BENCHMARK(assign_all<flat, Policy::balanced>)->Unit(benchmark::kMillisecond);
BENCHMARK(assign_all<flat, Policy::nearest>)->Unit(benchmark::kMillisecond);
BENCHMARK(assign_all<uneven, Policy::balanced>)->Unit(benchmark::kMillisecond);
BENCHMARK(assign_all<uneven, Policy::nearest>)->Unit(benchmark::kMillisecond);
BENCHMARK(assign_all<switched, Policy::balanced>)->Unit(benchmark::kMillisecond);
BENCHMARK(assign_all<switched, Policy::nearest>)->Unit(benchmark::kMillisecond);

// The cost of hwloc itself, with the same objects and components.
void hwloc_alone(benchmark::State& state) {
    for (auto _ : state) {
        hwloc_topology_t topology = nullptr;
        hwloc_topology_init(&topology);
        hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
        for (const auto type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE})
            hwloc_topology_set_type_filter(topology, type, HWLOC_TYPE_FILTER_KEEP_ALL);
        hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
        hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
        for (const char* component : {"gl", "opencl", "cuda", "nvml", "rsmi", "levelzero", "x86", "pci"})
            hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
        hwloc_topology_load(topology);
        hwloc_topology_destroy(topology);
    }
}

void discover_and_assign(benchmark::State& state) {
    for (auto _ : state) {
        const auto machine = discover();
        if (!machine.ok()) state.SkipWithError(machine.status().message().c_str());
        AssignmentRequest request;
        request.pes = place_emulated(machine.value(), 8);
        request.rails = rails_of(machine.value());
        auto assignment = assign(machine.value(), request);
        benchmark::DoNotOptimize(assignment);
    }
}

BENCHMARK(hwloc_alone)->Unit(benchmark::kMillisecond);
BENCHMARK(discover_and_assign)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace npushmem::topology
