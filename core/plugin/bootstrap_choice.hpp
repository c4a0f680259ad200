// NPUSHMEM_BOOTSTRAP=AUTO: the bootstrap that is surest to be the one for this process.
#pragma once

#include <memory>
#include <string>

#include "core/base/environment.hpp"
#include "core/plugin/loaded_plugin.hpp"
#include "core/plugin/plugin_finder.hpp"

namespace npushmem {

struct BootstrapChoice {
    std::shared_ptr<const LoadedBootstrap> plugin;
    std::string why;  // the sign that the plugin saw
};

// The bootstrap that makes and uses unique ids.
inline constexpr const char* id_bootstrap = "uid";

// Asks every plugin that is found and is sound. With a unique id, only the one that uses it is opened, because that is
// how large jobs start. Code::config when a launcher has started several processes that no plugin recognises: each
// would be a job of its own otherwise.
Result<BootstrapChoice> choose_bootstrap(const PluginFinder& finder, const Environment& environment,
                                         const npushmem_host& host, const npushmem_bootstrap_params& params);

}  // namespace npushmem
