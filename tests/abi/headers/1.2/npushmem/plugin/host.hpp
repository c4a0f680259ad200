// SPDX-License-Identifier: BSD-3-Clause
// The services of the host for a plugin, as a C++ class over the table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "npushmem/plugin/abi.h"

namespace npushmem {

enum class LogLevel : std::int32_t {
    error = NPUSHMEM_LOG_ERROR,
    warn = NPUSHMEM_LOG_WARN,
    info = NPUSHMEM_LOG_INFO,
    debug = NPUSHMEM_LOG_DEBUG,
    trace = NPUSHMEM_LOG_TRACE,
};

// Copyable reference to the host; valid from open until close returns. Any thread.
class Host {
public:
    Host(const npushmem_host* table, std::string subsystem) : table_(table), subsystem_(std::move(subsystem)) {}

    void log(LogLevel level, const std::string& message) const {
        if (table_ != nullptr && table_->log != nullptr)
            table_->log(table_->context, static_cast<std::int32_t>(level), subsystem_.c_str(), message.c_str());
    }

    // Returns the effective value of a variable (name without NPUSHMEM_), or `otherwise` if the host does not know it.
    [[nodiscard]] std::string config(const char* name, std::string_view otherwise = "") const {
        const char* value = nullptr;
        if (table_ != nullptr && table_->config != nullptr) value = table_->config(table_->context, name);
        return value != nullptr ? std::string(value) : std::string(otherwise);
    }

    [[nodiscard]] const npushmem_host* table() const { return table_; }

private:
    const npushmem_host* table_;
    std::string subsystem_;
};

}  // namespace npushmem
