// Takes a plugin's file through the stages of loading, up to but without `open`.
#pragma once

#include <memory>
#include <string_view>

#include "core/plugin/loaded_plugin.hpp"
#include "core/plugin/plugin_finder.hpp"

namespace npushmem {

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
