// SPDX-License-Identifier: BSD-3-Clause
// Open instances of plugins, with everything that keeps them usable.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/base/config.hpp"
#include "core/plugin/loader.hpp"
#include "npushmem/plugin/abi.h"
#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/table_bootstrap.hpp"
#include "npushmem/plugin/table_collectives.hpp"
#include "npushmem/plugin/table_transport.hpp"

namespace npushmem {

// The host as one plugin sees it: the runtime's services, with the values of the plugin's own configuration rows. It
// must stay at its address while the plugin's instance lives, because the plugin keeps a pointer to its table. `outer`
// and `rows` must outlive it. Any thread.
class PluginHost {
public:
    PluginHost(const npushmem_host& outer, std::span<const npushmem_config_row> rows);
    // For a plugin whose rows the runtime does not know yet: reads their values from `environment` now.
    PluginHost(const npushmem_host& outer, std::span<const npushmem_config_row> rows, const Environment& environment);
    PluginHost(const PluginHost&) = delete;
    PluginHost& operator=(const PluginHost&) = delete;

    // Checks that the values of the plugin's rows parse by their types.
    [[nodiscard]] Status check_values() const;
    [[nodiscard]] const npushmem_host& table() const { return table_; }

private:
    static void log(void* context, std::int32_t level, const char* subsystem, const char* message);
    static const char* config(void* context, const char* name);
    // Returns the runtime's value, else the environment's for a row of the plugin, else the row's default, else null.
    [[nodiscard]] const char* value(const char* name) const;

    const npushmem_host& outer_;
    std::span<const npushmem_config_row> rows_;
    std::map<std::string, std::string, std::less<>> environment_values_;  // from the environment, without NPUSHMEM_
    npushmem_host table_;
};

class OpenedTransport;

namespace detail {

// Base of OpenedTransport, destroyed after the instance is closed: inner instance, host, library, in this order.
struct TransportSupport {
    std::shared_ptr<const LoadedTransport> plugin;
    std::unique_ptr<PluginHost> host;
    std::unique_ptr<OpenedTransport> inner;  // null unless the plugin is a decorator
};

}  // namespace detail

class OpenedTransport final : private detail::TransportSupport, public TableTransport {
public:
    // Takes ownership of an instance that the plugin opened.
    OpenedTransport(detail::TransportSupport support, void* self)
        : TransportSupport(std::move(support)), TableTransport(plugin->table(), self, Owning::yes) {}

    [[nodiscard]] const LoadedTransport& loaded() const { return *plugin; }
    // "fault(p2p)": the form in which the user selects this transport.
    [[nodiscard]] std::string label() const {
        return inner ? plugin->name() + "(" + inner->label() + ")" : plugin->name();
    }
    // A decorator of minor version 0 cannot forward the call, so its inner transport gets it from here.
    Code forget(int pe) override {
        const bool is_forwarded =
            inner != nullptr && TableTraits<npushmem_transport_v1>::is_forget_missing(plugin->table());
        return is_forwarded ? inner->forget(pe) : TableTransport::forget(pe);
    }
};

// Performs the last stages: the configuration values parse, and the plugin's `open` succeeds. A decorator needs
// `inner`; other plugins must not have one. `host` must outlive the instance. After a failure nothing is open: `inner`
// is closed too.
Result<std::unique_ptr<OpenedTransport>> open_transport(const std::shared_ptr<const LoadedTransport>& plugin,
                                                        const npushmem_host& host,
                                                        const npushmem_transport_params& params,
                                                        std::unique_ptr<OpenedTransport> inner = nullptr);

namespace detail {

// Base of OpenedBootstrap, destroyed after the instance is closed.
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

// As open_transport. Joins the job: collective, and as long as the plugin's timeouts allow.
Result<std::unique_ptr<OpenedBootstrap>> open_bootstrap(const std::shared_ptr<const LoadedBootstrap>& plugin,
                                                        const npushmem_host& host,
                                                        const npushmem_bootstrap_params& params);

namespace detail {

// Base of OpenedCollectives, destroyed after the instance is closed.
struct CollectivesSupport {
    std::shared_ptr<const LoadedCollectives> plugin;
    std::unique_ptr<PluginHost> host;
};

}  // namespace detail

class OpenedCollectives final : private detail::CollectivesSupport, public TableCollectives {
public:
    OpenedCollectives(detail::CollectivesSupport support, void* self)
        : CollectivesSupport(std::move(support)), TableCollectives(plugin->table(), self) {}
};

// As open_transport.
Result<std::unique_ptr<Collectives>> open_collectives(const std::shared_ptr<const LoadedCollectives>& plugin,
                                                      const npushmem_host& host,
                                                      const npushmem_collectives_params& params);

// Fills `id` by the plugin's get_uniqueid; Code::unsupported if it has none. The service of the id stays inside the
// library and may use `host`: keep both until all ranks have opened the job. The plugin receives `host` itself, which
// must know the plugin's rows.
Status make_uniqueid(const LoadedBootstrap& plugin, const npushmem_host& host,
                     std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id);

// Calls the plugin's rank_ended, in the process that made `id`; Code::unsupported if it has none.
Status report_ended_rank(const LoadedBootstrap& plugin, const npushmem_host& host,
                         std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> id, int rank, int nranks,
                         const std::string& how);

}  // namespace npushmem
