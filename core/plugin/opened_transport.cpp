#include "core/plugin/opened_transport.hpp"

#include <fmt/format.h>

namespace npushmem {
namespace {

Status at_stage(const LoadedTransport& plugin, LoadStage stage, const Status& why) {
    return why.within(
        fmt::format("transport plugin '{}' ({}) refused at stage '{}'", plugin.name(), plugin.path(), name_of(stage)));
}

// A plugin that could not open is mostly right to say so: a PE did not come, a device is missing. Only what comes as
// a refusal of the plugin is told as one.
Status open_failed(const LoadedTransport& plugin, const Status& why) {
    if (why.code() == Code::plugin_refused) return at_stage(plugin, LoadStage::open, why);
    return why.within(fmt::format("transport {}", plugin.name()));
}

Status check_nesting(const LoadedTransport& plugin, bool has_inner) {
    const bool decorator = (plugin.table().capabilities & NPUSHMEM_CAP_DECORATOR) != 0;
    if (decorator == has_inner) return {};
    return {Code::config,
            decorator ? fmt::format("transport '{0}' wraps another one: write {0}(<transport>)", plugin.name())
                      : fmt::format("transport '{0}' wraps nothing: write {0} without parentheses", plugin.name())};
}

}  // namespace

Result<std::unique_ptr<OpenedTransport>> open_transport(const std::shared_ptr<const LoadedTransport>& plugin,
                                                        const npushmem_host& host,
                                                        const npushmem_transport_params& params,
                                                        std::unique_ptr<OpenedTransport> inner) {
    if (Status s = check_nesting(*plugin, inner != nullptr); !s.ok()) return s;
    detail::TransportSupport support{plugin, std::make_unique<PluginHost>(host, plugin->config_rows()),
                                     std::move(inner)};
    if (Status s = support.host->check_values(); !s.ok()) return at_stage(*plugin, LoadStage::configuration, s);
    npushmem_transport_params own = params;
    own.struct_size = sizeof own;
    own.inner = support.inner ? &support.inner->table() : nullptr;
    own.inner_self = support.inner ? support.inner->self() : nullptr;
    void* self = nullptr;
    npushmem_error error{};
    const std::int32_t code = plugin->table().open(&support.host->table(), &own, &self, &error);
    if (code != NPUSHMEM_OK) return open_failed(*plugin, status_from(code, error));
    return std::make_unique<OpenedTransport>(std::move(support), self);
}

}  // namespace npushmem
