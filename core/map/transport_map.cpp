// SPDX-License-Identifier: BSD-3-Clause
#include "core/map/transport_map.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace npushmem {

std::vector<int> sharing_group(int me, const MappingMatrix& maps) {
    const auto mapped = [&](int a, int b) { return maps[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; };
    std::vector<std::vector<int>> sets;
    for (int pe = 0; pe < static_cast<int>(maps.size()); ++pe) {
        const auto fits = [&](const std::vector<int>& set) {
            return std::ranges::all_of(set, [&](int other) { return mapped(pe, other) && mapped(other, pe); });
        };
        const auto found = std::ranges::find_if(sets, fits);
        if (found != sets.end())
            found->push_back(pe);
        else
            sets.push_back({pe});
    }
    return *std::ranges::find_if(sets, [me](const auto& set) { return std::ranges::find(set, me) != set.end(); });
}

double estimated_ns(const Reach& reach) {
    if (reach.latency_ns == 0) return 0;
    constexpr double ns_per_second = 1e9;
    const double transfer = reach.bytes_per_second == 0 ? 0
                                                        : ns_per_second * static_cast<double>(cost_sample_bytes) /
                                                              static_cast<double>(reach.bytes_per_second);
    return static_cast<double>(reach.latency_ns) + transfer;
}

std::string cost_text(double estimated_ns) { return fmt::format("about {:.1f} us for 4 KiB", estimated_ns / 1000); }

namespace {

bool same_route(const Route& a, const Route& b) {
    return a.transport == b.transport && a.reach.capabilities == b.reach.capabilities &&
           a.reach.atomic_32 == b.reach.atomic_32 && a.reach.atomic_64 == b.reach.atomic_64;
}

// Returns the route to one PE; if there is none, `transport` is -1. `refusals` are those of the transports before it.
Route find_route(std::span<const NamedTransport> transports, int pe, const TransportMap::PeerOf& peer_of,
                 std::vector<std::string>& refusals) {
    refusals.clear();
    for (int i = 0; i < static_cast<int>(transports.size()); ++i) {
        Reach reach = transports[static_cast<std::size_t>(i)].transport->reach(peer_of(i, pe));
        if (reach.reachable()) return {i, std::move(reach)};
        refusals.push_back(std::move(reach.why));
    }
    return {};
}

std::string text_of(std::span<const NamedTransport> transports, std::span<const std::string> refusals) {
    std::string text = refusals.empty() ? "\n  none was selected" : "";
    for (std::size_t i = 0; i < refusals.size(); ++i)
        text += fmt::format("\n  {}: {}", transports[i].name, refusals[i].empty() ? "gave no reason" : refusals[i]);
    return text;
}

// Appends the PE to the last range if route and reason are equal.
void append(std::vector<RouteRange>& ranges, int pe, const Route& route) {
    const auto alike = [&route](const Reach& reach) {
        return reach.why == route.reach.why && reach.latency_ns == route.reach.latency_ns &&
               reach.bytes_per_second == route.reach.bytes_per_second;
    };
    if (!ranges.empty() && same_route(ranges.back().route, route) && alike(ranges.back().route.reach))
        ranges.back().last = pe;
    else
        ranges.push_back({pe, pe, route});
}

std::string line_of(std::span<const NamedTransport> transports, const Route& route) {
    const double cost = estimated_ns(route.reach);
    return fmt::format("{}{} ({}{})", transports[static_cast<std::size_t>(route.transport)].name,
                       route.maps() ? ", mapped" : "", route.reach.why, cost > 0 ? ", " + cost_text(cost) : "");
}

// Ranges that differ only in capabilities that the line does not show share a line.
std::string text_of(std::span<const NamedTransport> transports, std::span<const RouteRange> ranges) {
    std::string text;
    for (std::size_t i = 0; i < ranges.size();) {
        const int first = ranges[i].first;
        const std::string line = line_of(transports, ranges[i].route);
        while (++i < ranges.size() && line_of(transports, ranges[i].route) == line) {
        }
        const int last = ranges[i - 1].last;
        text +=
            first == last ? fmt::format("pe {}: {}\n", first, line) : fmt::format("pe {}-{}: {}\n", first, last, line);
    }
    return text;
}

}  // namespace

void TransportMap::place(int pe, Route route) {
    in_use_ |= std::uint64_t{1} << route.transport;
    Route& shared = by_host_[static_cast<std::size_t>(layout_->host_of(pe))];
    if (pe == my_pe_ || (shared.transport >= 0 && !same_route(shared, route)))
        exceptions_.emplace(pe, std::move(route));
    else
        shared = std::move(route);
}

Result<TransportMap> TransportMap::build(std::span<const NamedTransport> transports, const HostLayout& layout,
                                         int my_pe, const PeerOf& peer_of) {
    TransportMap map(layout, my_pe);
    int unreachable = 0;
    std::string first_failure;
    std::vector<std::string> refusals;
    for (int pe = 0; pe < layout.npes(); ++pe) {
        Route route = find_route(transports, pe, peer_of, refusals);
        if (route.transport >= 0) {
            append(map.ranges_, pe, route);
            route.reach.why.clear();
            map.place(pe, std::move(route));
        } else if (unreachable++ == 0) {
            first_failure = fmt::format("PE {} cannot be reached from PE {} by any transport:{}", pe, my_pe,
                                        text_of(transports, refusals));
        }
    }
    if (unreachable == 0) {
        map.text_ = text_of(transports, map.ranges_);
        return map;
    }
    if (unreachable > 1) first_failure += fmt::format("\n  ({} more PEs likewise)", unreachable - 1);
    first_failure += "\n  select other transports with NPUSHMEM_TRANSPORTS or NPUSHMEM_REMOTE_TRANSPORT";
    return Status{Code::unreachable, std::move(first_failure)};
}

const RouteRange& TransportMap::range_of(int pe) const {
    const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), pe,
                                       [](int wanted, const RouteRange& range) { return wanted < range.first; });
    return *std::prev(next);
}

const Route& TransportMap::route(int pe) const {
    const auto exception = exceptions_.find(pe);
    return exception != exceptions_.end() ? exception->second
                                          : by_host_[static_cast<std::size_t>(layout_->host_of(pe))];
}

}  // namespace npushmem
