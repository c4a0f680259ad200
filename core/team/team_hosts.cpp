// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_hosts.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace npushmem {

std::unique_ptr<const coll::HostGrid> host_grid_of(const Members& members, int own_index, const HostLayout& layout) {
    std::unordered_map<int, std::size_t> numbers;  // of the layout's hosts, in the order of their first members
    std::vector<std::vector<int>> by_host;
    coll::HostGrid grid;
    for (int member = 0; member < members.count(); ++member) {
        const std::size_t host = numbers.try_emplace(layout.host_of(members.at(member)), by_host.size()).first->second;
        if (host == by_host.size()) by_host.emplace_back();
        if (member == own_index) {
            grid.own.host = static_cast<int>(host);
            grid.own.local_index = static_cast<int>(by_host[host].size());
        }
        by_host[host].push_back(member);
    }
    const std::size_t each = by_host.front().size();
    if (by_host.size() < 2 || each < 2) return nullptr;
    if (std::ranges::any_of(by_host, [&](const auto& host) { return host.size() != each; })) return nullptr;
    grid.hosts = static_cast<int>(by_host.size());
    grid.per_host = static_cast<int>(each);
    for (const auto& host : by_host) grid.members.insert(grid.members.end(), host.begin(), host.end());
    return std::make_unique<const coll::HostGrid>(std::move(grid));
}

}  // namespace npushmem
