// One line per event, written with one write(2) so that lines of PEs never interleave. A value that is handed down, not
// a global. Thread-safe.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/base/settings.hpp"
#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

class Log {
public:
    // Only warnings and errors, to standard error: what a program has before its configuration is read.
    Log() = default;
    // Opens settings.debug_file (with %h and %p replaced) if one is named.
    static Result<Log> open(const Settings& settings);

    Log(Log&& other) noexcept;
    Log& operator=(Log&& other) noexcept;
    ~Log();

    // Shown in front of every line from now on, for instance "pe 3/8".
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
    int descriptor_ = 2;
    bool owned_ = false;
};

}  // namespace npushmem
