// SPDX-License-Identifier: BSD-3-Clause
// The subject of the bootstrap contract, and ranks as forked processes.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/plugin/loader.hpp"
#include "core/plugin/opened_plugin.hpp"
#include "npushmem/testing/fake_host.hpp"

namespace npushmem::contract {

// One plugin, in a process that is one rank of a job. A launcher or this program has started the job.
struct BootstrapSubject {
    std::shared_ptr<const LoadedBootstrap> plugin;
    const fakes::FakeHost* host;
    std::optional<int> expected_ranks;

    // Joins the job once more; collective.
    [[nodiscard]] Result<std::unique_ptr<OpenedBootstrap>> open() const {
        npushmem_bootstrap_params params{};
        params.struct_size = sizeof params;
        params.rank = -1;
        params.nranks = -1;
        return open_bootstrap(plugin, host->table(), params);
    }
};

// An alarm ends a rank that is stuck for this time.
inline constexpr unsigned rank_timeout_seconds = 240;

// Runs `body` in `ranks` forked processes, for bootstraps that need no launcher, and waits for all. Each process gets
// its rank, the number of ranks, and an id from rank 0 if the plugin makes ids. Returns the number of processes that
// did not return 0, and prints how they ended on standard error.
int run_forked_ranks(const LoadedBootstrap& plugin, fakes::FakeHost& host, int ranks, const std::function<int()>& body);

}  // namespace npushmem::contract
