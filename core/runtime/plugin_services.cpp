#include "core/runtime/plugin_services.hpp"

namespace npushmem {

PluginServices::PluginServices(const Config& config, const Log& log)
    : config_(config), log_(log), table_{sizeof(npushmem_host),  1, 0, this, &PluginServices::log,
                                         &PluginServices::config} {}

void PluginServices::log(void* context, std::int32_t level, const char* subsystem, const char* message) {
    static_cast<PluginServices*>(context)->log_.line(static_cast<LogLevel>(level), subsystem, message);
}

const char* PluginServices::config(void* context, const char* name) {
    return static_cast<PluginServices*>(context)->config_.value(name);
}

}  // namespace npushmem
