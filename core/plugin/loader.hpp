// SPDX-License-Identifier: BSD-3-Clause
// Takes a plugin's file through the stages of loading, up to but without `open`.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/plugin/plugin_finder.hpp"
#include "core/plugin/plugin_table.hpp"
#include "core/plugin/shared_library.hpp"

namespace npushmem {

// A plugin that passed every stage before `open`: its library, held open, and the host's completed copy of its table.
// Immutable. All users of the library share it, so that dlclose is the last call.
template <class Table>
class LoadedPlugin {
public:
    LoadedPlugin(FoundPlugin found, SharedLibrary library, const Table& table, std::uint16_t minor)
        : found_(std::move(found)), library_(std::move(library)), table_(table), minor_(minor) {}
    LoadedPlugin(const LoadedPlugin&) = delete;
    LoadedPlugin& operator=(const LoadedPlugin&) = delete;

    [[nodiscard]] const std::string& name() const { return found_.name; }
    [[nodiscard]] const std::string& path() const { return found_.path; }
    [[nodiscard]] const FoundPlugin& found() const { return found_; }
    // The table has full size, and every function pointer is set.
    [[nodiscard]] const Table& table() const { return table_; }
    // The minor version that the plugin declared, also in the table's copy.
    [[nodiscard]] std::uint16_t minor() const { return minor_; }
    [[nodiscard]] std::span<const npushmem_config_row> config_rows() const {
        return {table_.config, table_.config == nullptr ? 0 : table_.config_count};
    }

private:
    FoundPlugin found_;
    SharedLibrary library_;
    Table table_;  // points into the library
    std::uint16_t minor_;
};

using LoadedTransport = LoadedPlugin<npushmem_transport_v1>;
using LoadedBootstrap = LoadedPlugin<npushmem_bootstrap_v1>;
using LoadedCollectives = LoadedPlugin<npushmem_collectives_v1>;

// Loads a plugin by name or by path (anything with a '/'). Opens only this file; the cost is that of a dlopen. A
// failure names the file, the stage, the versions and the remedy; its code is plugin_missing or plugin_refused. After a
// failure nothing stays loaded.
Result<std::shared_ptr<const LoadedTransport>> load_transport(const PluginFinder& finder,
                                                              std::string_view name_or_path);
Result<std::shared_ptr<const LoadedBootstrap>> load_bootstrap(const PluginFinder& finder,
                                                              std::string_view name_or_path);
Result<std::shared_ptr<const LoadedCollectives>> load_collectives(const PluginFinder& finder,
                                                                  std::string_view name_or_path);

// The same for a found file. `stage` is the stage that was reached: after a failure, the one that failed.
Result<std::shared_ptr<const LoadedTransport>> load_transport_file(const FoundPlugin& found, LoadStage& stage);
Result<std::shared_ptr<const LoadedBootstrap>> load_bootstrap_file(const FoundPlugin& found, LoadStage& stage);
Result<std::shared_ptr<const LoadedCollectives>> load_collectives_file(const FoundPlugin& found, LoadStage& stage);

}  // namespace npushmem
