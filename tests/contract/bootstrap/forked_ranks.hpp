// The ranks of a job as forked processes, for bootstraps that need no launcher.
#pragma once

#include <functional>

#include "core/plugin/loader.hpp"
#include "tests/fakes/fake_host.hpp"

namespace npushmem::contract {

// A rank that is stuck for so long ends itself, by an alarm.
inline constexpr unsigned rank_timeout_seconds = 240;

// Forks `ranks` processes, gives each its rank, the number and an id made by rank 0 if the plugin makes ids, runs
// `body` in each and waits for all. Returns how many of them did not return 0; says on standard error how those ended.
int run_forked_ranks(const LoadedBootstrap& plugin, fakes::FakeHost& host, int ranks, const std::function<int()>& body);

}  // namespace npushmem::contract
