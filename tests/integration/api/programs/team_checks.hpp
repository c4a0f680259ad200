// SPDX-License-Identifier: BSD-3-Clause
// Checks that all programs about teams share.
#pragma once

#include <string>
#include <vector>

#include "npushmem.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {

// The expected members of a team, as PEs of the world in the team's order.
using Members = std::vector<int>;

// The PEs of `parent` at start, start + stride, ...
Members strided(const Members& parent, int start, int stride, int size);

// Checks size, own index and translation of a team. Expects an invalid team on a PE that is not a member.
void check_team(Checker& check, const Job& job, const std::string& name, npushmem_team_t team, const Members& members);

// Every member puts a value to the next one through a context of the team, synchronises, and reads its own.
void use_team(Checker& check, const std::string& name, npushmem_team_t team, long* word);

// Splits this parent by every triplet, and some of the results again, `depth` levels deep.
void test_strided(Checker& check, const Job& job, npushmem_team_t parent, const Members& all, int depth, long* word);

// Teams from lists of members (npushmemx_team_init).
void test_listed(Checker& check, const Job& job, const Members& world, long* word);

}  // namespace npushmem::api_test
