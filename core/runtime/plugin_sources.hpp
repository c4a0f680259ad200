// SPDX-License-Identifier: BSD-3-Clause
// Opens bootstraps and transports from plugin files, and provides the runtime's services to them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/log.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_catalogue.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/runtime/start_request.hpp"
#include "npushmem/plugin/abi.h"

namespace npushmem {

// The table of services that plugins receive from the runtime. The object, config and log must stay at their addresses
// while any plugin is open.
class PluginServices {
public:
    PluginServices(const Config& config, const Log& log);
    PluginServices(const PluginServices&) = delete;
    PluginServices& operator=(const PluginServices&) = delete;

    [[nodiscard]] const npushmem_host& table() const { return table_; }

private:
    static void log(void* context, std::int32_t level, const char* subsystem, const char* message);
    static const char* config(void* context, const char* name);

    const Config& config_;
    const Log& log_;
    npushmem_host table_;
};

// Opens the bootstraps, transports and library of collectives that the configuration selects.
class PluginSources final : public Sources {
public:
    // The environment outlives the object.
    explicit PluginSources(const Environment& environment, GivenPlugins given = {})
        : environment_(environment), given_(std::move(given)) {}
    Result<std::unique_ptr<Bootstrap>> open_bootstrap(Config& config, const npushmem_host& host,
                                                      const npushmem_bootstrap_params& params) override;
    Result<std::vector<OwnedTransport>> open_transports(Config& config, const npushmem_host& host,
                                                        const npushmem_transport_params& params) override;
    Result<OwnedTransport> open_transport(const std::string& name, Config& config, const npushmem_host& host,
                                          const npushmem_transport_params& params) override;
    Result<OwnedCollectives> open_collectives(Config& config, const npushmem_host& host,
                                              const npushmem_collectives_params& params) override;
    [[nodiscard]] std::vector<std::string> collectives_names(const Config& config) const override;
    void declare_all(Config& config) override;
    [[nodiscard]] BootstrapSelection bootstrap_selection() const override { return bootstrap_selection_; }

private:
    // Valid until the next call with another search path.
    const PluginFinder& finder_of(const Settings& settings);

    const Environment& environment_;
    GivenPlugins given_;
    std::optional<PluginFinder> finder_;
    std::string user_path_;  // that it searches first
    BootstrapSelection bootstrap_selection_;
};

// Returns the name or file of the bootstrap that BOOTSTRAP and BOOTSTRAP_PLUGIN select.
Result<std::string> selected_bootstrap(const Settings& settings);
// For people: who chose the bootstrap that the settings name.
std::string reason_of_named_bootstrap(const Settings& settings);

// Makes a unique id with the selected bootstrap. `plugin` keeps the plugin loaded, whose code serves the id; null for
// the first id under this configuration.
Status make_id(Config& config, const npushmem_host& host, std::shared_ptr<const LoadedBootstrap>& plugin,
               std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id);

// Adds the rows of every plugin of the catalogue to `config`.
void declare_plugins(const PluginCatalogue& catalogue, Config& config);

}  // namespace npushmem
