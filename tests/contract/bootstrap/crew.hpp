// The ranks of a job as forked processes, for bootstraps that need no launcher but a unique id.
#pragma once

#include <functional>

#include "core/plugin/loaded_plugin.hpp"
#include "tests/fakes/fake_host.hpp"

namespace npushmem::contract {

// Forks `ranks` processes, gives each its rank, the number and an id made by rank 0, runs `body` in each and waits for
// all. Returns how many of them did not return 0; says on standard error how those ended.
int run_crew(const LoadedBootstrap& plugin, fakes::FakeHost& host, int ranks, const std::function<int()>& body);

}  // namespace npushmem::contract
