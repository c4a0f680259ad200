// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/opened_plugin.hpp"

#include <fmt/format.h>

#include <string_view>

#include "core/base/config.hpp"

namespace npushmem {

PluginHost::PluginHost(const npushmem_host& outer, std::span<const npushmem_config_row> rows)
    : outer_(outer), rows_(rows), table_{sizeof table_, outer.major, outer.minor, this, log, config} {}

PluginHost::PluginHost(const npushmem_host& outer, std::span<const npushmem_config_row> rows,
                       const Environment& environment)
    : PluginHost(outer, rows) {
    for (const auto& row : rows)
        if (auto text = environment.get(fmt::format("NPUSHMEM_{}", row.name)))
            environment_values_.emplace(row.name, *text);
}

Status PluginHost::check_values() const {
    for (const auto& row : rows_) {
        const char* text = value(row.name);
        if (const Status parsed = check_typed(row.type, text); !parsed.ok())
            return {Code::config, fmt::format("NPUSHMEM_{} is '{}': {}", row.name, text, parsed.message())};
    }
    return {};
}

void PluginHost::log(void* context, std::int32_t level, const char* subsystem, const char* message) {
    const auto& outer = static_cast<PluginHost*>(context)->outer_;
    if (outer.log != nullptr) outer.log(outer.context, level, subsystem, message);
}

const char* PluginHost::config(void* context, const char* name) {
    return static_cast<PluginHost*>(context)->value(name);
}

const char* PluginHost::value(const char* name) const {
    if (outer_.config != nullptr)
        if (const char* found = outer_.config(outer_.context, name); found != nullptr) return found;
    if (const auto given = environment_values_.find(name); given != environment_values_.end())
        return given->second.c_str();
    for (const auto& row : rows_)
        if (std::string_view(row.name) == name) return row.default_value;
    return nullptr;
}

namespace {

template <class Table>
std::string_view kind_of(const LoadedPlugin<Table>&) {
    return name_of(TableTraits<Table>::kind);
}

template <class Table>
Status at_stage(const LoadedPlugin<Table>& plugin, LoadStage stage, const Status& why) {
    return why.within(fmt::format("{} plugin '{}' ({}) refused at stage '{}'", kind_of(plugin), plugin.name(),
                                  plugin.path(), name_of(stage)));
}

// Reports a failed open as a refusal of the plugin only if the plugin refused. Most failures have other causes: a PE is
// missing, or a device.
template <class Table>
Status open_failed(const LoadedPlugin<Table>& plugin, const Status& why) {
    if (why.code() == Code::plugin_refused) return at_stage(plugin, LoadStage::open, why);
    return why.within(fmt::format("{} {}", kind_of(plugin), plugin.name()));
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
    ErrorBuffer error;
    const std::int32_t code = plugin->table().open(&support.host->table(), &own, &self, &error);
    if (code != NPUSHMEM_OK) return open_failed(*plugin, status_from(code, error));
    return std::make_unique<OpenedTransport>(std::move(support), self);
}

namespace {

Status check_rank(int rank, int nranks) {
    if (nranks > 0 && rank >= 0 && rank < nranks) return {};
    return {Code::protocol, fmt::format("its open returned rank {} of {}, which cannot be", rank, nranks)};
}

}  // namespace

Result<std::unique_ptr<OpenedBootstrap>> open_bootstrap(const std::shared_ptr<const LoadedBootstrap>& plugin,
                                                        const npushmem_host& host,
                                                        const npushmem_bootstrap_params& params) {
    detail::BootstrapSupport support{plugin, std::make_unique<PluginHost>(host, plugin->config_rows())};
    if (Status s = support.host->check_values(); !s.ok()) return at_stage(*plugin, LoadStage::configuration, s);
    npushmem_bootstrap_params own = params;
    own.struct_size = sizeof own;
    void* self = nullptr;
    std::int32_t rank = -1;
    std::int32_t nranks = -1;
    ErrorBuffer error;
    const std::int32_t code = plugin->table().open(&support.host->table(), &own, &self, &rank, &nranks, &error);
    if (code != NPUSHMEM_OK) return open_failed(*plugin, status_from(code, error));
    auto opened = std::make_unique<OpenedBootstrap>(std::move(support), self, rank, nranks);
    if (Status s = check_rank(rank, nranks); !s.ok()) return at_stage(*plugin, LoadStage::open, s);
    return opened;
}

Result<std::unique_ptr<Collectives>> open_collectives(const std::shared_ptr<const LoadedCollectives>& plugin,
                                                      const npushmem_host& host,
                                                      const npushmem_collectives_params& params) {
    detail::CollectivesSupport support{plugin, std::make_unique<PluginHost>(host, plugin->config_rows())};
    if (Status s = support.host->check_values(); !s.ok()) return at_stage(*plugin, LoadStage::configuration, s);
    npushmem_collectives_params own = params;
    own.struct_size = sizeof own;
    void* self = nullptr;
    ErrorBuffer error;
    const std::int32_t code = plugin->table().open(&support.host->table(), &own, &self, &error);
    if (code != NPUSHMEM_OK) return open_failed(*plugin, status_from(code, error));
    return std::unique_ptr<Collectives>(std::make_unique<OpenedCollectives>(std::move(support), self));
}

Status make_uniqueid(const LoadedBootstrap& plugin, const npushmem_host& host,
                     std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
    const Status values = PluginHost(host, plugin.config_rows()).check_values();
    if (!values.ok()) return at_stage(plugin, LoadStage::configuration, values);
    ErrorBuffer error;
    const std::int32_t code = plugin.table().get_uniqueid(&host, id.data(), &error);
    return status_from(code, error).within(fmt::format("bootstrap plugin '{}', get_uniqueid", plugin.name()));
}

Status report_ended_rank(const LoadedBootstrap& plugin, const npushmem_host& host,
                         std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> id, int rank, int nranks,
                         const std::string& how) {
    ErrorBuffer error;
    const std::int32_t code = plugin.table().rank_ended(&host, id.data(), rank, nranks, how.c_str(), &error);
    return status_from(code, error).within(fmt::format("bootstrap plugin '{}', rank_ended", plugin.name()));
}

}  // namespace npushmem
