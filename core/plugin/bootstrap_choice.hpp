// Which bootstrap a process uses: the one that the user names, or with NPUSHMEM_BOOTSTRAP=AUTO the one that is surest
// to be the right one for this process.
#pragma once

#include <memory>
#include <string>

#include "core/base/environment.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_finder.hpp"

namespace npushmem {

struct BootstrapChoice {
    std::shared_ptr<const LoadedBootstrap> plugin;
    std::string why;     // the sign that the plugin saw
    int confidence = 0;  // the plugin's own answer: 0 or one of NPUSHMEM_RECOGNISED_x
};

// The bootstrap that makes and uses unique ids.
inline constexpr const char* id_bootstrap = "uid";

// Asks every plugin that is found and is sound. With a unique id, only the one that uses it is opened, because that is
// how large jobs start. Code::config when a launcher has started several processes that no plugin recognises: each
// would be a job of its own otherwise.
Result<BootstrapChoice> choose_bootstrap(const PluginFinder& finder, const Environment& environment,
                                         const npushmem_host& host, const npushmem_bootstrap_params& params);

// The bootstrap of this name or path. `why` stays empty.
Result<BootstrapChoice> named_bootstrap(const PluginFinder& finder, const std::string& name,
                                        const Environment& environment, const npushmem_host& host,
                                        const npushmem_bootstrap_params& params);

// Code::config when the chosen bootstrap ignores the launcher of this process: it has made a job of one process where
// the launcher has started several, or where NPUSHMEM_NPES asks for several. NPUSHMEM_NPES=1, a unique id or an
// attribute ask for such a job.
Status check_single_process_job(const BootstrapChoice& choice, int nranks, const Environment& environment,
                                const npushmem_host& host, const npushmem_bootstrap_params& params);

}  // namespace npushmem
