// What is known about the plugins of a search path, as a value: for npushmem-info and for error reports.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_finder.hpp"

namespace npushmem {

// A configuration row that outlives the plugin's library.
struct PluginVariable {
    std::string name;  // without NPUSHMEM_
    std::string default_value;
    std::string type;
    std::string meaning;
};

struct PluginEntry {
    FoundPlugin found;
    // Of a plugin that passed every stage before `open`; empty for a refused one.
    std::string summary;
    std::uint16_t major = 0;
    std::uint16_t minor = 0;
    std::uint64_t capabilities = 0;  // transports: NPUSHMEM_CAP_x; see capability_names()
    std::vector<PluginVariable> variables;
    std::optional<Refusal> refusal;

    [[nodiscard]] bool usable() const { return !refusal.has_value(); }
};

class PluginCatalogue {
public:
    // Loads every plugin of both kinds once and unloads it again: slow, and for information only. Refusals are entries.
    static PluginCatalogue scan(const PluginFinder& finder);
    // The same, with another way to examine a file.
    static PluginCatalogue scan(const PluginFinder& finder,
                                const std::function<PluginEntry(const FoundPlugin&)>& examine);

    // Transports first, each kind sorted by name.
    [[nodiscard]] const std::vector<PluginEntry>& entries() const { return entries_; }
    // Null when there is none of that name.
    [[nodiscard]] const PluginEntry* find(PluginKind kind, std::string_view name) const;

private:
    std::vector<PluginEntry> entries_;
};

// The entry of one file, found and tried. `stage` follows the loading, for a caller that watches from another process.
PluginEntry examine_plugin(const FoundPlugin& found);
PluginEntry examine_plugin(const FoundPlugin& found, LoadStage& stage);
// The entries of plugins that are loaded already.
PluginEntry describe(const LoadedTransport& plugin);
PluginEntry describe(const LoadedBootstrap& plugin);

}  // namespace npushmem
