// SPDX-License-Identifier: BSD-3-Clause
// Converts handles of teams to teams.
#pragma once

#include "core/api/library.hpp"
#include "core/team/team.hpp"
#include "npushmem/handles.h"

namespace npushmem::api {

// Returns null if the handle names no team: invalid, destroyed, or the library is not running.
Team* find_team(npushmem_team_t handle);
// As find_team, but a failure has the reason.
Result<Team*> team_of(npushmem_team_t handle);

}  // namespace npushmem::api
