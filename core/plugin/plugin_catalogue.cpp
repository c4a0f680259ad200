// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/plugin_catalogue.hpp"

#include <algorithm>

#include "core/plugin/loader.hpp"

namespace npushmem {
namespace {

std::vector<PluginVariable> copies_of(std::span<const npushmem_config_row> rows) {
    std::vector<PluginVariable> out;
    for (const auto& row : rows) out.push_back({row.name, row.default_value, row.type, row.meaning});
    return out;
}

template <class Table>
PluginEntry entry_of(const LoadedPlugin<Table>& plugin) {
    PluginEntry entry{plugin.found(),
                      plugin.table().summary,
                      plugin.table().major,
                      plugin.minor(),
                      0,
                      copies_of(plugin.config_rows()),
                      std::nullopt};
    return entry;
}

template <class Load>
PluginEntry examine_with(const FoundPlugin& found, LoadStage& stage, Load load) {
    const auto loaded = load(found, stage);
    if (loaded.ok()) return describe(*loaded.value());
    PluginEntry entry{};
    entry.found = found;
    entry.refusal = Refusal{stage, loaded.status().message()};
    return entry;
}

}  // namespace

PluginEntry describe(const LoadedTransport& plugin) {
    PluginEntry entry = entry_of(plugin);
    entry.capabilities = plugin.table().capabilities;
    return entry;
}

PluginEntry describe(const LoadedBootstrap& plugin) { return entry_of(plugin); }

PluginEntry describe(const LoadedCollectives& plugin) { return entry_of(plugin); }

PluginEntry examine_plugin(const FoundPlugin& found) {
    LoadStage stage{};
    return examine_plugin(found, stage);
}

PluginEntry examine_plugin(const FoundPlugin& found, LoadStage& stage) {
    switch (found.kind) {
        case PluginKind::transport: return examine_with(found, stage, load_transport_file);
        case PluginKind::bootstrap: return examine_with(found, stage, load_bootstrap_file);
        case PluginKind::collectives: break;
    }
    return examine_with(found, stage, load_collectives_file);
}

PluginCatalogue PluginCatalogue::scan(const PluginFinder& finder) {
    return scan(finder, [](const FoundPlugin& found) { return examine_plugin(found); });
}

PluginCatalogue PluginCatalogue::scan(const PluginFinder& finder,
                                      const std::function<PluginEntry(const FoundPlugin&)>& examine) {
    PluginCatalogue out;
    for (const PluginKind kind : all_plugin_kinds)
        for (const auto& found : finder.scan(kind)) out.entries_.push_back(examine(found));
    return out;
}

const PluginEntry* PluginCatalogue::find(PluginKind kind, std::string_view name) const {
    const auto match = [&](const PluginEntry& entry) { return entry.found.kind == kind && entry.found.name == name; };
    const auto place = std::find_if(entries_.begin(), entries_.end(), match);
    return place == entries_.end() ? nullptr : &*place;
}

}  // namespace npushmem
