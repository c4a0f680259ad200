// SPDX-License-Identifier: BSD-3-Clause
// The log. Each event is one line, written with one write(2), so that lines of PEs never interleave. A value that
// callers pass on, not a global. Thread-safe.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/poller.hpp"
#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

class Log {
public:
    // Logs warnings and errors to standard error, for programs that have not read their configuration yet.
    Log() = default;
    // Opens settings.debug_file, if set, with %h and %p replaced. Fails with Code::config.
    static Result<Log> open(const Settings& settings);

    // Sets the text at the beginning of all later lines, for instance "pe 3/8".
    void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

    [[nodiscard]] bool enabled(LogLevel level, std::string_view subsystem) const;

    template <class... Args>
    void write(LogLevel level, std::string_view subsystem, fmt::format_string<Args...> format, Args&&... args) const {
        if (enabled(level, subsystem)) line(level, subsystem, fmt::format(format, std::forward<Args>(args)...));
    }

    void line(LogLevel level, std::string_view subsystem, std::string_view message) const;

private:
    LogLevel level_ = LogLevel::warn;
    std::vector<std::string> subsystems_;
    std::string prefix_;
    FileDescriptor file_;  // without one, lines go to the standard error
};

}  // namespace npushmem
