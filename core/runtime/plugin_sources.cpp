// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/plugin_sources.hpp"

#include <fmt/core.h>

#include "core/base/launcher_channel.hpp"
#include "core/base/parse.hpp"
#include "core/plugin/bootstrap_choice.hpp"
#include "core/plugin/opened_plugin.hpp"
#include "core/plugin/plugin_catalogue.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/plugin/transport_stack.hpp"

namespace npushmem {

PluginServices::PluginServices(const Config& config, const Log& log)
    : config_(config), log_(log), table_{sizeof(npushmem_host),  1, 0, this, &PluginServices::log,
                                         &PluginServices::config} {}

void PluginServices::log(void* context, std::int32_t level, const char* subsystem, const char* message) {
    static_cast<PluginServices*>(context)->log_.line(static_cast<LogLevel>(level), subsystem, message);
}

const char* PluginServices::config(void* context, const char* name) {
    return static_cast<PluginServices*>(context)->config_.value(name);
}

namespace {

bool wraps_p2p(const TransportStack& stack) { return stack.innermost() == "p2p"; }

Result<OwnedTransport> open_one(const PluginFinder& finder, const TransportStack& stack, Config& config,
                                const npushmem_host& host, const npushmem_transport_params& params) {
    auto loaded = load_stack(finder, stack);
    if (!loaded.ok()) return loaded.status();
    for (const auto& layer : loaded.value())
        if (Status declared = config.declare(layer->name().c_str(), layer->config_rows()); !declared.ok())
            return declared;
    auto opened = open_stack(loaded.value(), host, params);
    if (!opened.ok()) return opened.status();
    const std::uint64_t innermost = loaded.value().back()->table().capabilities;
    return OwnedTransport{stack.text(),
                          std::move(opened).value(),
                          (innermost & NPUSHMEM_CAP_REMOTE) != 0,
                          (innermost & NPUSHMEM_CAP_PINS) != 0,
                          (innermost & NPUSHMEM_CAP_DEVICES) != 0,
                          {}};
}

}  // namespace

Result<std::string> selected_bootstrap(const Settings& settings) {
    if (settings.bootstrap.find('/') != std::string::npos) return settings.bootstrap;
    const std::string name = lowercase(settings.bootstrap);
    if (name == "pmi") return settings.bootstrap_pmi == "pmi-2" ? "pmi2" : settings.bootstrap_pmi;
    if (name != "plugin") return name;
    if (!settings.bootstrap_plugin.empty()) return settings.bootstrap_plugin;
    return Status{Code::config,
                  "NPUSHMEM_BOOTSTRAP=PLUGIN needs NPUSHMEM_BOOTSTRAP_PLUGIN to name the plugin or its path"};
}

namespace {

// One stack of a selection, and the variable that names it.
struct SelectedStack {
    TransportStack stack;
    const char* variable;
};

Status append_selection(const char* variable, const std::string& text, std::vector<SelectedStack>& out) {
    auto parsed = parse_transport_selection(text);
    if (!parsed.ok()) return parsed.status().within(variable);
    for (TransportStack& stack : parsed.value()) {
        for (const SelectedStack& earlier : out)
            if (earlier.stack.text() == stack.text())
                return {Code::config,
                        fmt::format("{}: '{}' is listed twice, first in {}", variable, stack.text(), earlier.variable)};
        out.push_back({std::move(stack), variable});
    }
    return {};
}

// Returns TRANSPORTS, then REMOTE_TRANSPORT unless open_remote_candidates() decides it.
Result<std::vector<SelectedStack>> selected_transports(const Settings& settings) {
    std::vector<SelectedStack> out;
    const std::string word = lowercase(settings.remote_transport);
    const bool remote = !word.empty() && word != "none" && word != "auto";
    Status appended;
    if (!remote || !trimmed(settings.transports).empty())
        appended = append_selection("NPUSHMEM_TRANSPORTS", settings.transports, out);
    if (remote && appended.ok())
        appended = append_selection("NPUSHMEM_REMOTE_TRANSPORT", settings.remote_transport, out);
    return appended.ok() ? Result<std::vector<SelectedStack>>(std::move(out)) : appended;
}

}  // namespace

namespace {

// Returns the variable that names the bootstrap.
const char* bootstrap_variable(const Settings& settings) {
    const std::string name = lowercase(settings.bootstrap);
    if (name == "pmi" && settings.bootstrap_pmi != "pmi") return "NPUSHMEM_BOOTSTRAP_PMI";
    return name == "plugin" && !settings.bootstrap_plugin.empty() ? "NPUSHMEM_BOOTSTRAP_PLUGIN" : "NPUSHMEM_BOOTSTRAP";
}

}  // namespace

std::string reason_of_named_bootstrap(const Settings& settings) {
    const bool by_launcher = !settings.launcher_fd.empty() && settings.bootstrap == launcher_bootstrap;
    if (by_launcher) return "chosen by npushmem-run; NPUSHMEM_BOOTSTRAP selects another one";
    return fmt::format("set by {}", bootstrap_variable(settings));
}

namespace {

// The process environment with the configuration file behind it, for bootstraps whose rows are not declared yet.
class ConfiguredEnvironment final : public Environment {
public:
    ConfiguredEnvironment(const Config& config, const Environment& process) : config_(config), process_(process) {}
    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override {
        auto own = config_.given(name);
        return own ? std::move(own) : process_.get(name);
    }
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override {
        return process_.npushmem_variables();
    }

private:
    const Config& config_;
    const Environment& process_;
};

Result<BootstrapChoice> select_bootstrap(const PluginFinder& finder, const Environment& environment,
                                         const Config& config, const npushmem_host& host,
                                         const npushmem_bootstrap_params& params) {
    auto name = selected_bootstrap(config.settings());
    if (!name.ok()) return name.status();
    if (name.value() == "auto" && !config.requested_bootstrap().empty()) {
        auto named = named_bootstrap(finder, config.requested_bootstrap(), ConfiguredEnvironment(config, environment),
                                     host, params);
        if (named.ok()) named.value().why = "requested by the program";
        return named;
    }
    if (name.value() == "auto") {
        auto chosen = choose_bootstrap(finder, ConfiguredEnvironment(config, environment), host, params);
        if (chosen.ok())
            chosen.value().why =
                chosen.value().why.empty() ? "chosen by itself" : "chosen by itself: " + chosen.value().why;
        return chosen;
    }
    auto named = named_bootstrap(finder, name.value(), ConfiguredEnvironment(config, environment), host, params);
    if (named.ok()) named.value().why = reason_of_named_bootstrap(config.settings());
    return named;
}

Result<BootstrapChoice> load_selected_bootstrap(const PluginFinder& finder, const Environment& environment,
                                                Config& config, const npushmem_host& host,
                                                const npushmem_bootstrap_params& params) {
    auto chosen = select_bootstrap(finder, environment, config, host, params);
    if (!chosen.ok()) return chosen.status().within(bootstrap_variable(config.settings()));
    const LoadedBootstrap& plugin = *chosen.value().plugin;
    Status declared = config.declare(plugin.name().c_str(), plugin.config_rows());
    return declared.ok() ? std::move(chosen) : Result<BootstrapChoice>(declared);
}

// The plugin that uses ids makes them, whichever would be chosen for a process without one.
Result<std::shared_ptr<const LoadedBootstrap>> load_id_bootstrap(Config& config) {
    auto name = selected_bootstrap(config.settings());
    if (!name.ok()) return name.status();
    const std::string wanted = name.value() == "auto" ? id_bootstrap : name.value();
    auto loaded = load_bootstrap(PluginFinder(plugin_search_path(config.settings().plugin_path)), wanted);
    if (!loaded.ok()) return loaded.status().within(bootstrap_variable(config.settings()));
    Status declared = config.declare(loaded.value()->name().c_str(), loaded.value()->config_rows());
    return declared.ok() ? loaded : Result<std::shared_ptr<const LoadedBootstrap>>(declared);
}

}  // namespace

const PluginFinder& PluginSources::finder_of(const Settings& settings) {
    if (!finder_ || settings.plugin_path != user_path_) {
        finder_.emplace(plugin_search_path(settings.plugin_path), given_);
        user_path_ = settings.plugin_path;
    }
    return *finder_;
}

Result<std::unique_ptr<Bootstrap>> PluginSources::open_bootstrap(Config& config, const npushmem_host& host,
                                                                 const npushmem_bootstrap_params& params) {
    auto chosen = load_selected_bootstrap(finder_of(config.settings()), environment_, config, host, params);
    if (!chosen.ok()) return chosen.status();
    bootstrap_selection_ = {chosen.value().plugin->name(), chosen.value().why, chosen.value().confidence};
    auto opened = npushmem::open_bootstrap(chosen.value().plugin, host, params);
    if (!opened.ok() && lowercase(config.settings().bootstrap) == "auto")
        return opened.status().within(chosen.value().why);
    if (!opened.ok()) return opened.status();
    Status several = check_single_process_job(chosen.value(), opened.value()->nranks(),
                                              ConfiguredEnvironment(config, environment_), host, params);
    if (!several.ok()) return several;
    return std::unique_ptr<Bootstrap>(std::move(opened).value());
}

Status make_id(Config& config, const npushmem_host& host, std::shared_ptr<const LoadedBootstrap>& plugin,
               std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
    if (!plugin) {
        auto loaded = load_id_bootstrap(config);
        if (!loaded.ok()) return loaded.status();
        plugin = loaded.value();
    }
    return make_uniqueid(*plugin, host, id);
}

Result<std::vector<OwnedTransport>> PluginSources::open_transports(Config& config, const npushmem_host& host,
                                                                   const npushmem_transport_params& params) {
    const Settings& settings = config.settings();
    auto selection = selected_transports(settings);
    if (!selection.ok()) return selection.status();
    const PluginFinder& finder = finder_of(settings);
    std::vector<OwnedTransport> opened;
    for (const auto& [stack, variable] : selection.value()) {
        if (settings.disable_p2p && wraps_p2p(stack)) continue;
        auto one = open_one(finder, stack, config, host, params);
        if (!one.ok()) return one.status().within(variable);
        opened.push_back(std::move(one).value());
        opened.back().why = fmt::format("listed in {}", variable);
    }
    return opened;
}

Result<OwnedTransport> PluginSources::open_transport(const std::string& name, Config& config, const npushmem_host& host,
                                                     const npushmem_transport_params& params) {
    const auto selection = parse_transport_selection(name);
    if (!selection.ok()) return selection.status();
    return open_one(finder_of(config.settings()), selection.value().front(), config, host, params);
}

Result<OwnedCollectives> PluginSources::open_collectives(Config& config, const npushmem_host& host,
                                                         const npushmem_collectives_params& params) {
    const auto loaded = load_collectives(finder_of(config.settings()), config.settings().coll_library);
    if (!loaded.ok()) return loaded.status();
    const LoadedCollectives& plugin = *loaded.value();
    if (Status declared = config.declare(plugin.name().c_str(), plugin.config_rows()); !declared.ok()) return declared;
    auto opened = npushmem::open_collectives(loaded.value(), host, params);
    if (!opened.ok()) return opened.status();
    return OwnedCollectives{plugin.name(), std::move(opened).value()};
}

std::vector<std::string> PluginSources::collectives_names(const Config& config) const {
    std::vector<std::string> names;
    const PluginFinder finder(plugin_search_path(config.settings().plugin_path));
    for (const FoundPlugin& found : finder.scan(PluginKind::collectives)) names.push_back(found.name);
    for (const npushmem_collectives_v1* given : given_.collectives) names.emplace_back(given->name);
    return names;
}

void PluginSources::declare_all(Config& config) {
    declare_plugins(PluginCatalogue::scan(finder_of(config.settings())), config);
}

void declare_plugins(const PluginCatalogue& catalogue, Config& config) {
    for (const auto& entry : catalogue.entries()) {
        std::vector<npushmem_config_row> rows;
        for (const auto& variable : entry.variables)
            rows.push_back({variable.name.c_str(), variable.default_value.c_str(), variable.type.c_str(),
                            variable.meaning.c_str()});
        // A malformed value of an unused plugin does no harm.
        (void)config.declare(entry.found.name.c_str(), rows);
    }
}

}  // namespace npushmem
