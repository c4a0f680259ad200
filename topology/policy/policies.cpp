// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>

#include "topology/policy/matching.hpp"
#include "topology/policy/min_cost_flow.hpp"
#include "topology/policy/policies.hpp"

namespace npushmem::topology {
namespace {

constexpr std::array<std::string_view, 5> names{"balanced", "nearest", "exclusive", "round_robin", "list"};

}  // namespace

std::string_view name_of(Policy policy) { return names.at(static_cast<std::size_t>(policy)); }

Result<Policy> parse_policy(std::string_view text) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (text == names[i]) return static_cast<Policy>(i);
    }
    return Status{Code::config,
                  fmt::format("\"{}\" is not a NIC policy; choose balanced, nearest, exclusive, round_robin "
                              "or list",
                              text)};
}

namespace {

Choice choose_primary(const CostTable& costs, const Bins& rails) {
    Choice choice;
    for (const auto& rail : MinCostFlow(costs, rails).solve()) choice.push_back({rail.value()});  // no bin has a limit
    return choice;
}

std::vector<std::size_t> unused_rails(const Choice& choice, const Bins& rails) {
    std::vector<std::size_t> users = rails.load;
    for (const auto& chosen : choice) ++users[chosen.front()];
    std::vector<std::size_t> unused;
    for (std::size_t rail = 0; rail < users.size(); ++rail) {
        if (users[rail] == 0 && (rails.half.empty() || !rails.half[rail])) unused.push_back(rail);
    }
    return unused;
}

// The cost row of an unused rail: PEs that may have it get class PIX, all others class SYS. None when the rail is in no
// PE's nearest class, such as a NIC for storage.
std::optional<std::vector<CostEntry>> row_of_extra(const CostTable& costs, std::size_t rail) {
    const auto is_near = [&](const std::vector<CostEntry>& pe) { return pe[rail].distance_class == nearest_class(pe); };
    DistanceClass best = DistanceClass::sys;
    for (const auto& pe : costs)
        if (is_near(pe)) best = std::min(best, pe[rail].distance_class);
    if (std::none_of(costs.begin(), costs.end(), is_near)) return std::nullopt;
    std::vector<CostEntry> row;
    for (const auto& pe : costs) {
        const bool allowed = is_near(pe) && pe[rail].distance_class == best;
        row.push_back({allowed ? DistanceClass::pix : DistanceClass::sys, pe[rail].rank});
    }
    return row;
}

// Keeps the first rail first: distance and load selected it.
void sort_extras(const CostTable& costs, Choice& choice) {
    for (std::size_t pe = 0; pe < choice.size(); ++pe) {
        std::sort(choice[pe].begin() + 1, choice[pe].end(), [&](std::size_t a, std::size_t b) {
            return costs[pe][a].rank != costs[pe][b].rank ? costs[pe][a].rank < costs[pe][b].rank : a < b;
        });
    }
}

}  // namespace

// The same flow with exchanged roles: rails are the items, PEs are the bins and already have one rail each.
void add_unused(const CostTable& costs, std::size_t max_per_pe, const Bins& rails, Choice& choice) {
    std::vector<std::size_t> spread;
    CostTable rows;
    for (const std::size_t rail : unused_rails(choice, rails)) {
        auto row = row_of_extra(costs, rail);
        if (!row) continue;
        spread.push_back(rail);
        rows.push_back(std::move(*row));
    }
    const auto pes = MinCostFlow(rows, {std::vector<std::size_t>(costs.size(), 1), {}, {}, max_per_pe}).solve();
    for (std::size_t i = 0; i < spread.size(); ++i) {
        if (pes[i]) choice[*pes[i]].push_back(spread[i]);
    }
    sort_extras(costs, choice);
}

Choice choose_balanced(const CostTable& costs, std::size_t max_per_pe, const Bins& rails) {
    if (costs.empty() || costs.front().empty()) return Choice(costs.size());
    Choice choice = choose_primary(costs, rails);
    if (max_per_pe > 1) add_unused(costs, max_per_pe, rails, choice);
    return choice;
}

namespace {

// One row per device (that of its first PE, since all are at one place), one column per free rail.
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

namespace {

// Less is nearer.
std::size_t nearness(const CostEntry& entry) {
    return static_cast<std::size_t>(std::max(entry.distance_class, DistanceClass::pxb));
}

// All rails of a PE, the nearest class first.
std::vector<std::size_t> by_class(const std::vector<CostEntry>& costs) {
    std::vector<std::size_t> rails(costs.size());
    std::iota(rails.begin(), rails.end(), std::size_t{0});
    std::stable_sort(rails.begin(), rails.end(),
                     [&](std::size_t a, std::size_t b) { return costs[a].distance_class < costs[b].distance_class; });
    return rails;
}

// The rails that a PE may have: those as near as its nearest one.
std::vector<std::size_t> eligible_rails(const std::vector<CostEntry>& costs) {
    auto rails = by_class(costs);
    const std::size_t nearest = nearness(costs[rails.front()]);
    std::erase_if(rails, [&](std::size_t rail) { return nearness(costs[rail]) != nearest; });
    return rails;
}

// Moves one place of a PE, possibly several times.
void move_off_crowded(std::size_t& place, const std::vector<std::size_t>& eligible, std::vector<std::size_t>& users) {
    for (const std::size_t rail : eligible) {
        if (users[place] < users[rail] + 2) continue;
        --users[place];
        ++users[rail];
        place = rail;
    }
}

void remove_repeated(std::vector<std::size_t>& rails) {
    std::vector<std::size_t> once;
    for (const std::size_t rail : rails)
        if (std::find(once.begin(), once.end(), rail) == once.end()) once.push_back(rail);
    rails = std::move(once);
}

}  // namespace

Choice choose_nearest(const CostTable& costs, std::size_t max_per_pe) {
    if (costs.empty() || costs.front().empty()) return Choice(costs.size());
    const std::size_t rails = costs.front().size();
    const std::size_t places = std::min(std::max<std::size_t>(1, rails / costs.size()), max_per_pe);
    std::vector<std::size_t> users(rails, 0);
    Choice choice;
    for (const auto& row : costs) {
        auto taken = eligible_rails(row);
        taken.resize(std::min(taken.size(), places));
        for (const std::size_t rail : taken) ++users[rail];
        choice.push_back(std::move(taken));
    }
    for (std::size_t pe = 0; pe < costs.size(); ++pe) {
        const auto eligible = eligible_rails(costs[pe]);
        for (std::size_t& place : choice[pe]) move_off_crowded(place, eligible, users);
        remove_repeated(choice[pe]);
    }
    return choice;
}

}  // namespace npushmem::topology
