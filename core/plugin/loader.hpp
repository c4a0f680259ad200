// A plugin that passed every stage before `open`: its library, held open, and the host's completed copy of its table.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/plugin/plugin_finder.hpp"
#include "core/plugin/plugin_table.hpp"
#include "core/plugin/shared_library.hpp"

namespace npushmem {

// Immutable; shared by everything that calls into the library, so that dlclose comes last.
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
    // Full size, every function pointer set.
    [[nodiscard]] const Table& table() const { return table_; }
    // As the plugin declared it; the table's copy says the same.
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

// Takes a plugin's file through the stages of loading, up to but without `open`.
// By name or by path (anything with a '/'). Opens this one file only; the cost is that of a dlopen. A failure says the
// file, the stage, the versions and what to do; its code is plugin_missing or plugin_refused. Nothing stays loaded
// after a failure.
Result<std::shared_ptr<const LoadedTransport>> load_transport(const PluginFinder& finder,
                                                              std::string_view name_or_path);
Result<std::shared_ptr<const LoadedBootstrap>> load_bootstrap(const PluginFinder& finder,
                                                              std::string_view name_or_path);

// The same for a file already found. `stage` is the stage that was reached: after a failure, the one not passed.
Result<std::shared_ptr<const LoadedTransport>> load_transport_file(const FoundPlugin& found, LoadStage& stage);
Result<std::shared_ptr<const LoadedBootstrap>> load_bootstrap_file(const FoundPlugin& found, LoadStage& stage);

}  // namespace npushmem
