// An open instance of a transport plugin, with everything that it needs to stay usable.
#pragma once

#include <memory>
#include <string>

#include "core/plugin/loaded_plugin.hpp"
#include "core/plugin/plugin_host.hpp"
#include "npushmem/plugin/table_transport.hpp"

namespace npushmem {

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

}  // namespace npushmem
