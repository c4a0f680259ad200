// What the bootstrap contract is run on: one plugin, in a process that is one rank of a job that a launcher, or this
// program itself, has started.
#pragma once

#include <memory>
#include <optional>

#include "core/plugin/opened_plugin.hpp"
#include "tests/fakes/fake_host.hpp"

namespace npushmem::contract {

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

}  // namespace npushmem::contract
