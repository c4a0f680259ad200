// An open instance of a bootstrap plugin, with everything that it needs to stay usable.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/plugin/loaded_plugin.hpp"
#include "core/plugin/plugin_host.hpp"
#include "npushmem/plugin/table_bootstrap.hpp"

namespace npushmem {

namespace detail {

// Base of OpenedBootstrap that is destroyed after the instance has been closed.
struct BootstrapSupport {
    std::shared_ptr<const LoadedBootstrap> plugin;
    std::unique_ptr<PluginHost> host;
};

}  // namespace detail

class OpenedBootstrap final : private detail::BootstrapSupport, public TableBootstrap {
public:
    OpenedBootstrap(detail::BootstrapSupport support, void* self, int rank, int nranks)
        : BootstrapSupport(std::move(support)), TableBootstrap(plugin->table(), self, rank, nranks) {}

    [[nodiscard]] const LoadedBootstrap& loaded() const { return *plugin; }
};

// As open_transport. Joins the job, so it is collective and may take as long as the plugin's time-outs allow.
Result<std::unique_ptr<OpenedBootstrap>> open_bootstrap(const std::shared_ptr<const LoadedBootstrap>& plugin,
                                                        const npushmem_host& host,
                                                        const npushmem_bootstrap_params& params);

// Fills `id` by the plugin's get_uniqueid; Code::unsupported when it has none. What serves the id lives on inside the
// library and may use `host`, therefore keep both until the job has been opened on all ranks; and the plugin is given
// `host` itself, which must know the plugin's rows.
Status make_uniqueid(const LoadedBootstrap& plugin, const npushmem_host& host,
                     std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id);

// By the plugin's rank_ended, in the process that made `id`; Code::unsupported when it has none.
Status report_ended_rank(const LoadedBootstrap& plugin, const npushmem_host& host,
                         std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> id, int rank, int nranks,
                         const std::string& how);

}  // namespace npushmem
