// The services that plugins get from the runtime, as the table that crosses the boundary.
#pragma once

#include "core/base/config.hpp"
#include "core/base/log.hpp"
#include "npushmem/plugin/abi.h"

namespace npushmem {

// Stays where it is while any plugin is open; so do config and log.
class PluginServices {
public:
    PluginServices(const Config& config, const Log& log);
    PluginServices(const PluginServices&) = delete;
    PluginServices& operator=(const PluginServices&) = delete;

    [[nodiscard]] const npushmem_host& table() const { return table_; }

private:
    static void log(void* context, std::int32_t level, const char* subsystem, const char* message);
    static const char* config(void* context, const char* name);

    const Config& config_;
    const Log& log_;
    npushmem_host table_;
};

}  // namespace npushmem
