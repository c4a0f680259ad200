// Looking at this machine and assigning its NICs, beside what hwloc's own load takes of it.
#include <benchmark/benchmark.h>
#include <hwloc.h>

#include "topology/assign.hpp"
#include "topology/discovery.hpp"

namespace npushmem::topology {
namespace {

// What a program that uses hwloc pays in any case: the same objects and components, and no more.
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
