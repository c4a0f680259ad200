// SPDX-License-Identifier: BSD-3-Clause
// Chooses the bootstrap of a process: the one that the user names, or with NPUSHMEM_BOOTSTRAP=AUTO the one that
// recognises this process with the highest confidence.
#pragma once

#include <memory>
#include <string>

#include "core/base/config.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_finder.hpp"

namespace npushmem {

struct BootstrapChoice {
    std::shared_ptr<const LoadedBootstrap> plugin;
    std::string why;     // the sign by which the plugin recognised the process
    int confidence = 0;  // the plugin's answer: 0 or one of NPUSHMEM_RECOGNISED_x
};

// The bootstrap that makes and uses unique ids.
inline constexpr const char* id_bootstrap = "uid";

// Queries every sound plugin. With a unique id, opens only the plugin that uses it, because large jobs start this way.
// Code::config if a launcher started several processes that no plugin recognises: each would become a job of its own.
Result<BootstrapChoice> choose_bootstrap(const PluginFinder& finder, const Environment& environment,
                                         const npushmem_host& host, const npushmem_bootstrap_params& params);

// Returns the bootstrap of this name or path. `why` stays empty.
Result<BootstrapChoice> named_bootstrap(const PluginFinder& finder, const std::string& name,
                                        const Environment& environment, const npushmem_host& host,
                                        const npushmem_bootstrap_params& params);

// Code::config if the chosen bootstrap ignores the launcher of this process: it made a job of one process although the
// launcher started several, or NPUSHMEM_NPES requests several. NPUSHMEM_NPES=1, a unique id or an attribute allow such
// a job.
Status check_single_process_job(const BootstrapChoice& choice, int nranks, const Environment& environment,
                                const npushmem_host& host, const npushmem_bootstrap_params& params);

}  // namespace npushmem
