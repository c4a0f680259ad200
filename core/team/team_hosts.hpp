// SPDX-License-Identifier: BSD-3-Clause
// The members of a team by host, for its collectives.
#pragma once

#include <memory>

#include "core/coll/host_grid.hpp"
#include "core/map/host_layout.hpp"
#include "core/team/members.hpp"

namespace npushmem {

// Returns null unless the members are on several hosts, with the same number of members, at least two, on each.
std::unique_ptr<const coll::HostGrid> host_grid_of(const Members& members, int own_index, const HostLayout& layout);

}  // namespace npushmem
