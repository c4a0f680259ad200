#include "core/plugin/opened_bootstrap.hpp"

#include <fmt/format.h>

namespace npushmem {
namespace {

Status at_stage(const LoadedBootstrap& plugin, LoadStage stage, const Status& why) {
    return why.within(
        fmt::format("bootstrap plugin '{}' ({}) refused at stage '{}'", plugin.name(), plugin.path(), name_of(stage)));
}

// A plugin that could not open is mostly right to say so: a PE did not come, a device is missing. Only what comes as
// a refusal of the plugin is told as one.
Status open_failed(const LoadedBootstrap& plugin, const Status& why) {
    if (why.code() == Code::plugin_refused) return at_stage(plugin, LoadStage::open, why);
    return why.within(fmt::format("bootstrap {}", plugin.name()));
}

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
    npushmem_error error{};
    const std::int32_t code = plugin->table().open(&support.host->table(), &own, &self, &rank, &nranks, &error);
    if (code != NPUSHMEM_OK) return open_failed(*plugin, status_from(code, error));
    auto opened = std::make_unique<OpenedBootstrap>(std::move(support), self, rank, nranks);
    if (Status s = check_rank(rank, nranks); !s.ok()) return at_stage(*plugin, LoadStage::open, s);
    return opened;
}

Status make_uniqueid(const LoadedBootstrap& plugin, const npushmem_host& host,
                     std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
    const Status values = PluginHost(host, plugin.config_rows()).check_values();
    if (!values.ok()) return at_stage(plugin, LoadStage::configuration, values);
    npushmem_error error{};
    const std::int32_t code = plugin.table().get_uniqueid(&host, id.data(), &error);
    return status_from(code, error).within(fmt::format("bootstrap plugin '{}', get_uniqueid", plugin.name()));
}

Status report_ended_rank(const LoadedBootstrap& plugin, const npushmem_host& host,
                         std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> id, int rank, int nranks,
                         const std::string& how) {
    npushmem_error error{};
    const std::int32_t code = plugin.table().rank_ended(&host, id.data(), rank, nranks, how.c_str(), &error);
    return status_from(code, error).within(fmt::format("bootstrap plugin '{}', rank_ended", plugin.name()));
}

}  // namespace npushmem
