// The host as one plugin sees it: the runtime's services, with the plugin's own configuration rows filled in.
#pragma once

#include <map>
#include <span>
#include <string>

#include "core/base/environment.hpp"
#include "npushmem/plugin/abi.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Stays where it is while the plugin's instance lives: the plugin keeps a pointer to its table. `outer` and `rows` must
// outlive it. Any thread.
class PluginHost {
public:
    PluginHost(const npushmem_host& outer, std::span<const npushmem_config_row> rows);
    // For a plugin whose rows the runtime does not know yet: their values come from `environment`, which is read now.
    PluginHost(const npushmem_host& outer, std::span<const npushmem_config_row> rows, const Environment& environment);
    PluginHost(const PluginHost&) = delete;
    PluginHost& operator=(const PluginHost&) = delete;

    // Do the values that the plugin will see parse as their rows say?
    [[nodiscard]] Status check_values() const;
    [[nodiscard]] const npushmem_host& table() const { return table_; }

private:
    static void log(void* context, std::int32_t level, const char* subsystem, const char* message);
    static const char* config(void* context, const char* name);
    // The runtime's answer, else what the environment gives a row of the plugin, else the row's default, else null.
    [[nodiscard]] const char* value(const char* name) const;

    const npushmem_host& outer_;
    std::span<const npushmem_config_row> rows_;
    std::map<std::string, std::string, std::less<>> environment_values_;  // by the environment, without NPUSHMEM_
    npushmem_host table_;
};

}  // namespace npushmem
