#include "topology/binding.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "topology/discovery.hpp"

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

// Asks again with more room while the kernel has more CPUs than there was room for.
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

}  // namespace npushmem::topology
