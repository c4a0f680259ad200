#include "core/plugin/plugin_host.hpp"

#include <fmt/format.h>

#include <string_view>

#include "core/base/config.hpp"

namespace npushmem {

PluginHost::PluginHost(const npushmem_host& outer, std::span<const npushmem_config_row> rows)
    : outer_(outer), rows_(rows), table_{sizeof table_, outer.major, outer.minor, this, log, config} {}

PluginHost::PluginHost(const npushmem_host& outer, std::span<const npushmem_config_row> rows,
                       const Environment& environment)
    : PluginHost(outer, rows) {
    for (const auto& row : rows)
        if (auto text = environment.get(fmt::format("NPUSHMEM_{}", row.name)))
            environment_values_.emplace(row.name, *text);
}

Status PluginHost::check_values() const {
    for (const auto& row : rows_) {
        const char* text = value(row.name);
        if (const Status parsed = check_typed(row.type, text); !parsed.ok())
            return {Code::config, fmt::format("NPUSHMEM_{} is '{}': {}", row.name, text, parsed.message())};
    }
    return {};
}

void PluginHost::log(void* context, std::int32_t level, const char* subsystem, const char* message) {
    const auto& outer = static_cast<PluginHost*>(context)->outer_;
    if (outer.log != nullptr) outer.log(outer.context, level, subsystem, message);
}

const char* PluginHost::config(void* context, const char* name) {
    return static_cast<PluginHost*>(context)->value(name);
}

const char* PluginHost::value(const char* name) const {
    if (outer_.config != nullptr)
        if (const char* found = outer_.config(outer_.context, name); found != nullptr) return found;
    if (const auto given = environment_values_.find(name); given != environment_values_.end())
        return given->second.c_str();
    for (const auto& row : rows_)
        if (std::string_view(row.name) == name) return row.default_value;
    return nullptr;
}

}  // namespace npushmem
