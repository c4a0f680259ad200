// The host as one plugin sees it: the runtime's services, with the plugin's own configuration rows filled in.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/base/environment.hpp"
#include "core/plugin/loader.hpp"
#include "npushmem/plugin/abi.h"
#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/table_bootstrap.hpp"
#include "npushmem/plugin/table_transport.hpp"

namespace npushmem {

// Stays where it is while the plugin's instance lives: the plugin keeps a pointer to its table. `outer` and `rows` must
// outlive it. Any thread.
class PluginHost {
public:
    PluginHost(const npushmem_host& outer, std::span<const npushmem_config_row> rows);
    // For a plugin whose rows the runtime does not know yet: their values come from `environment`, which is read now.
    PluginHost(const npushmem_host& outer, std::span<const npushmem_config_row> rows, const Environment& environment);
    PluginHost(const PluginHost&) = delete;
    PluginHost& operator=(const PluginHost&) = delete;

    // Do the values that the plugin will see parse as their rows say?
    [[nodiscard]] Status check_values() const;
    [[nodiscard]] const npushmem_host& table() const { return table_; }

private:
    static void log(void* context, std::int32_t level, const char* subsystem, const char* message);
    static const char* config(void* context, const char* name);
    // The runtime's answer, else what the environment gives a row of the plugin, else the row's default, else null.
    [[nodiscard]] const char* value(const char* name) const;

    const npushmem_host& outer_;
    std::span<const npushmem_config_row> rows_;
    std::map<std::string, std::string, std::less<>> environment_values_;  // by the environment, without NPUSHMEM_
    npushmem_host table_;
};

// An open instance of a transport plugin, with everything that it needs to stay usable.
class OpenedTransport;

namespace detail {

// Base of OpenedTransport that is destroyed after the instance has been closed: inner instance, host, library, in this
// order.
struct TransportSupport {
    std::shared_ptr<const LoadedTransport> plugin;
    std::unique_ptr<PluginHost> host;
    std::unique_ptr<OpenedTransport> inner;  // null for what is no decorator
};

}  // namespace detail

class OpenedTransport final : private detail::TransportSupport, public TableTransport {
public:
    // Takes over an instance that the plugin has opened.
    OpenedTransport(detail::TransportSupport support, void* self)
        : TransportSupport(std::move(support)), TableTransport(plugin->table(), self, Owning::yes) {}

    [[nodiscard]] const LoadedTransport& loaded() const { return *plugin; }
    // "fault(p2p)": what the user would write to get this one.
    [[nodiscard]] std::string label() const {
        return inner ? plugin->name() + "(" + inner->label() + ")" : plugin->name();
    }
};

// The last stages: the effective configuration values parse, and the plugin's own `open` accepts. A decorator needs
// `inner`, anything else must not have one. `host` must outlive the instance. After a failure nothing is left open:
// `inner` is closed as well.
Result<std::unique_ptr<OpenedTransport>> open_transport(const std::shared_ptr<const LoadedTransport>& plugin,
                                                        const npushmem_host& host,
                                                        const npushmem_transport_params& params,
                                                        std::unique_ptr<OpenedTransport> inner = nullptr);

// An open instance of a bootstrap plugin, with everything that it needs to stay usable.
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
