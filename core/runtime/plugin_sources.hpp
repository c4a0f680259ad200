// Bootstraps and transports from plugin files, as the configuration selects them.
#pragma once

#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_catalogue.hpp"
#include "core/runtime/start_request.hpp"

namespace npushmem {

class PluginSources final : public Sources {
public:
    Result<std::unique_ptr<Bootstrap>> open_bootstrap(Config& config, const npushmem_host& host,
                                                      const npushmem_bootstrap_params& params) override;
    Result<std::vector<OwnedTransport>> open_transports(Config& config, const npushmem_host& host,
                                                        const npushmem_transport_params& params) override;
    Result<OwnedTransport> open_transport(const std::string& name, Config& config, const npushmem_host& host,
                                          const npushmem_transport_params& params) override;
    void declare_all(Config& config) override;
    [[nodiscard]] std::string bootstrap_description() const override { return bootstrap_description_; }

private:
    std::string bootstrap_description_;
};

// The file or name of the bootstrap that BOOTSTRAP and BOOTSTRAP_PLUGIN name.
Result<std::string> selected_bootstrap(const Settings& settings);

// Makes a unique id by the selected bootstrap; `plugin` keeps what serves it alive.
Status make_id(Config& config, const npushmem_host& host, std::shared_ptr<const LoadedBootstrap>& plugin,
               std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id);

// Adds the rows of every plugin of the catalogue to `config`.
void declare_plugins(const PluginCatalogue& catalogue, Config& config);

}  // namespace npushmem
