// SPDX-License-Identifier: BSD-3-Clause
// The cases of the bootstrap contract. Every rank of a job runs the body of a case. Each case opens the bootstrap
// again, so that under a launcher, where one process runs all cases, a job that has failed does not affect the next
// case.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/testing/contract.hpp"
#include "tests/contract/bootstrap/ranks.hpp"

namespace npushmem::contract {

// The processes of a case. `needs_own_ranks`: the suite forks them, because the case kills ranks, orders their steps,
// or chooses their ids; it cannot run under a launcher.
enum class CaseRanks { any, needs_own_ranks };

struct BootstrapCase {
    const char* name;
    int min_ranks;
    int max_ranks;  // limited by the run time or by the memory of the case
    CaseRanks ranks;
    void (*body)(Rank& rank);
};

inline constexpr int few_ranks = 8;
inline constexpr int many_ranks = 64;  // as max_ranks: any number

std::vector<BootstrapCase> bootstrap_gather_cases();
std::vector<BootstrapCase> bootstrap_barrier_cases();
std::vector<BootstrapCase> bootstrap_failure_cases();
std::vector<BootstrapCase> bootstrap_death_cases();
std::vector<BootstrapCase> bootstrap_life_cases();
std::vector<BootstrapCase> bootstrap_id_cases();
const std::vector<BootstrapCase>& all_bootstrap_cases();

struct CaseResult {
    enum class Kind { passed, skipped, failed };

    Kind kind = Kind::failed;
    std::string text;  // the reason of a skip; the failures with the output of their ranks
};

// Forks the ranks, runs the case in each, and returns what became of it.
CaseResult run_bootstrap_case(const BootstrapSubject& subject, const BootstrapCase& which, int ranks,
                              RankOutput output = RankOutput::captured);

// As add_bootstrap_contract, for these numbers of ranks only.
void add_bootstrap_contract_of(const BootstrapSubject& subject, std::span<const int> numbers_of_ranks);
// For a process that a launcher has started as one of `ranks` ranks: RUN_ALL_TESTS runs the cases, in order, in this
// process.
void add_bootstrap_contract_of_launched_rank(const BootstrapSubject& subject, int ranks);

// For the bodies. Dies unless an expectation has failed in this rank: the supervisor must see such a failure.
[[noreturn]] void die(Rank& rank);
// Is it a code by which a call reports that another rank is missing?
bool reports_missing_rank(Code code);
// Expects a failure that reports a missing rank, with a message.
void expect_missing_rank_reported(const Status& status, std::string_view during);

}  // namespace npushmem::contract
