// Assigning NICs to many PEs: the default policy beside the two greedy passes, on machines of different shapes.
#include <benchmark/benchmark.h>

#include "tests/fakes/machine_builder.hpp"
#include "topology/assign.hpp"

namespace npushmem::topology {
namespace {

constexpr std::size_t max_pes = 1024;
constexpr std::size_t max_nics = 64;

// Everything behind one host bridge: every PE may use every NIC, which leaves the most to decide.
Machine flat(std::size_t pes, std::size_t nics) {
    MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package());
    for (std::size_t i = 0; i < pes; ++i) builder.accelerator(host);
    for (std::size_t i = 0; i < nics; ++i) builder.nic(host, "mlx5_" + std::to_string(i));
    return builder.machine();
}

// One switch per NIC, on two sockets: nearness leaves little to decide.
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

// As flat, with speeds that differ, so that loads are weighed.
Machine uneven(std::size_t pes, std::size_t nics) {
    MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package());
    for (std::size_t i = 0; i < pes; ++i) builder.accelerator(host);
    for (std::size_t i = 0; i < nics; ++i)
        builder.nic(host, "mlx5_" + std::to_string(i), {{1, PortState::active, 100'000'000'000 * (1 + i % 4)}});
    return builder.machine();
}

template <Machine (*Make)(std::size_t, std::size_t), Policy Way>
void assign_all(benchmark::State& state) {
    const Machine machine = Make(max_pes, max_nics);
    AssignmentRequest request;
    request.pes = place_emulated(machine, max_pes);
    request.rails = rails_of(machine);
    request.policy = Way;
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

}  // namespace
}  // namespace npushmem::topology
