// SPDX-License-Identifier: BSD-3-Clause
// The cases of the bootstrap contract. Every rank of the job runs all of them, in the same order; each case opens the
// plugin again, so a case that ends with a failed job does not affect the next.
#pragma once

#include <vector>

#include "tests/contract/bootstrap/forked_ranks.hpp"

namespace npushmem::contract {

struct BootstrapCase {
    const char* name;
    int min_ranks;
    void (*body)(const BootstrapSubject&);
};

std::vector<BootstrapCase> bootstrap_gather_cases();
std::vector<BootstrapCase> bootstrap_barrier_cases();
std::vector<BootstrapCase> bootstrap_failure_cases();
std::vector<BootstrapCase> bootstrap_life_cases();

}  // namespace npushmem::contract
