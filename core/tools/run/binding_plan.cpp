#include "core/tools/run/binding_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace npushmem::run {
namespace {

CpuList one_of(const std::vector<CpuList>& units, std::size_t pe) { return units[pe % units.size()]; }

CpuList share_of(const std::vector<CpuList>& units, std::size_t pe, std::size_t npes) {
    CpuList out;
    const std::size_t begin = units.size() * pe / npes;
    const std::size_t end = units.size() * (pe + 1) / npes;
    for (std::size_t unit = begin; unit < end; ++unit) out.insert(out.end(), units[unit].begin(), units[unit].end());
    return out;
}

}  // namespace

std::vector<CpuList> binding_plan(Bind bind, const std::vector<CpuList>& units, int npes) {
    const auto count = static_cast<std::size_t>(npes);
    std::vector<CpuList> out(count);
    const bool crowded = count > units.size();
    if (bind == Bind::none || (bind == Bind::automatic && crowded)) return out;
    const bool share = (bind == Bind::share || bind == Bind::automatic) && !crowded;
    for (std::size_t pe = 0; pe < count; ++pe) out[pe] = share ? share_of(units, pe, count) : one_of(units, pe);
    return out;
}

std::string format_cpus(const CpuList& cpus) {
    CpuList sorted = cpus;
    std::sort(sorted.begin(), sorted.end());
    std::string out;
    for (std::size_t first = 0; first < sorted.size();) {
        std::size_t last = first;
        while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
        out += out.empty() ? "" : ",";
        out += first == last ? fmt::format("{}", sorted[first]) : fmt::format("{}-{}", sorted[first], sorted[last]);
        first = last + 1;
    }
    return out;
}

}  // namespace npushmem::run
