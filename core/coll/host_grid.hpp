// SPDX-License-Identifier: BSD-3-Clause
// The members of a group by host.
#pragma once

#include <cstddef>
#include <vector>

namespace npushmem::coll {

struct Position {
    int host;
    int place;
};

// Several hosts with the same number of members, at least two. The members of a host map each other. A member's place
// is its position among the members of its host; hosts are in the order of their first members.
struct HostGrid {
    int hosts = 0;
    int per_host = 0;
    int own_host = 0;
    int own_place = 0;
    std::vector<int> members;  // by host, then by place

    [[nodiscard]] int member(int host, int place) const {
        return members[static_cast<std::size_t>(host) * static_cast<std::size_t>(per_host) +
                       static_cast<std::size_t>(place)];
    }
    [[nodiscard]] int beside(int place) const { return member(own_host, place); }
    // The member that this one exchanges data with on another host.
    [[nodiscard]] int counterpart(int host) const { return member(host, own_place); }
    [[nodiscard]] Position position_of(int wanted) const {
        int at = 0;
        while (members[static_cast<std::size_t>(at)] != wanted) ++at;
        return {at / per_host, at % per_host};
    }
};

}  // namespace npushmem::coll
