// SPDX-License-Identifier: BSD-3-Clause
// A catalogue of the plugins of a search path, for npushmem-info and for error reports.
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
    // Set if the plugin passed every stage before `open`; empty for a refused one.
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
    // Loads and unloads every plugin of all kinds: slow, for information only. A refused plugin is an entry too.
    static PluginCatalogue scan(const PluginFinder& finder);
    // The same, with another function that examines a file.
    static PluginCatalogue scan(const PluginFinder& finder,
                                const std::function<PluginEntry(const FoundPlugin&)>& examine);

    // Transports first, each kind sorted by name.
    [[nodiscard]] const std::vector<PluginEntry>& entries() const { return entries_; }
    // Returns null if there is no plugin of that name.
    [[nodiscard]] const PluginEntry* find(PluginKind kind, std::string_view name) const;

private:
    std::vector<PluginEntry> entries_;
};

// Loads one file and returns its entry. `stage` follows the loading, for a caller that watches from another process.
PluginEntry examine_plugin(const FoundPlugin& found);
PluginEntry examine_plugin(const FoundPlugin& found, LoadStage& stage);
// Returns the entry of a loaded plugin.
PluginEntry describe(const LoadedTransport& plugin);
PluginEntry describe(const LoadedBootstrap& plugin);
PluginEntry describe(const LoadedCollectives& plugin);

}  // namespace npushmem
