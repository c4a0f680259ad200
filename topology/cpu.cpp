#include "topology/cpu.hpp"

#include <fmt/format.h>

namespace npushmem::topology {

std::string describe(const CpuSet& cpus) {
    if (cpus.empty()) return "none";
    std::string out;
    for (std::size_t first = 0; first < cpus.size();) {
        std::size_t last = first;
        while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
        if (!out.empty()) out += ',';
        out += first == last ? fmt::format("{}", cpus[first]) : fmt::format("{}-{}", cpus[first], cpus[last]);
        first = last + 1;
    }
    return out;
}

}  // namespace npushmem::topology
