// SPDX-License-Identifier: BSD-3-Clause
// The members of a group by host.
#pragma once

#include <cstddef>
#include <vector>

namespace npushmem::coll {

// Returns the numbers of all hosts but the own one, from its successor on.
inline std::vector<int> hosts_after(int own, int hosts) {
    std::vector<int> others;
    for (int i = 1; i < hosts; ++i) others.push_back((own + i) % hosts);
    return others;
}

// Several hosts with the same number of members. The members of a host map each other. Hosts are in the order of
// their first members; a local index is a member's position among the members of its host.
struct HostGrid {
    struct Position {
        int host;
        int local_index;
    };

    int hosts = 0;
    int per_host = 0;
    Position own{0, 0};
    std::vector<int> members;  // by host, then by local index

    [[nodiscard]] int member(int host, int local_index) const {
        return members[static_cast<std::size_t>(host) * static_cast<std::size_t>(per_host) +
                       static_cast<std::size_t>(local_index)];
    }
    [[nodiscard]] std::vector<int> other_hosts() const { return hosts_after(own.host, hosts); }
    [[nodiscard]] int local_member(int local_index) const { return member(own.host, local_index); }
    // Returns the member of another host with this one's local index.
    [[nodiscard]] int peer_on(int host) const { return member(host, own.local_index); }
    // Searches all members.
    [[nodiscard]] Position position_of(int wanted) const {
        int at = 0;
        while (members[static_cast<std::size_t>(at)] != wanted) ++at;
        return {at / per_host, at % per_host};
    }
};

}  // namespace npushmem::coll
