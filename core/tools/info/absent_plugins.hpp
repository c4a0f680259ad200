// Plugins that could not be built, with the reason: the build leaves a list of them among the plugins.
#pragma once

#include <string>
#include <vector>

#include "core/plugin/plugin_finder.hpp"

namespace npushmem::info {

struct AbsentPlugin {
    PluginKind kind;
    std::string name;
    std::string why;
};

// Of all folders; a folder without a list has none.
std::vector<AbsentPlugin> absent_plugins(const std::vector<std::string>& folders);

}  // namespace npushmem::info
