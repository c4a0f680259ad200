#include "topology/policy_exclusive.hpp"

#include <map>

#include "topology/matching.hpp"
#include "topology/policy_balanced.hpp"

namespace npushmem::topology {
namespace {

// One row per device (that of its first PE, since all sit at one place), one column per free rail.
CostTable rows_of(const CostTable& costs, const std::map<std::uint32_t, std::size_t>& first_pe,
                  const std::vector<std::size_t>& rails) {
    CostTable out;
    for (const auto& [device, pe] : first_pe) {
        auto& row = out.emplace_back();
        for (const std::size_t rail : rails) row.push_back(costs[pe][rail]);
    }
    return out;
}

}  // namespace

std::vector<std::size_t> free_rails(const Bins& rails) {
    std::vector<std::size_t> out;
    for (std::size_t rail = 0; rail < rails.load.size(); ++rail) {
        if (rails.load[rail] == 0 && (rails.half.empty() || !rails.half[rail])) out.push_back(rail);
    }
    return out;
}

Choice choose_exclusive(const CostTable& costs, std::span<const std::uint32_t> device_of, std::size_t max_per_pe,
                        const Bins& rails) {
    std::map<std::uint32_t, std::size_t> first_pe;
    for (std::size_t pe = 0; pe < costs.size(); ++pe) first_pe.emplace(device_of[pe], pe);
    const auto usable = free_rails(rails);
    if (first_pe.size() > usable.size()) return {};
    const CostTable rows = rows_of(costs, first_pe, usable);
    Choice by_device;
    for (const std::size_t column : cheapest_matching(rows)) by_device.push_back({column});
    if (max_per_pe > 1 && !rows.empty()) add_unused(rows, max_per_pe, Bins::of(usable.size()), by_device);
    std::map<std::uint32_t, std::vector<std::size_t>> rails_of;
    std::size_t row = 0;
    for (const auto& [device, pe] : first_pe) {
        for (const std::size_t column : by_device[row]) rails_of[device].push_back(usable[column]);
        ++row;
    }
    Choice choice;
    for (std::size_t pe = 0; pe < costs.size(); ++pe) choice.push_back(rails_of[device_of[pe]]);
    return choice;
}

}  // namespace npushmem::topology
