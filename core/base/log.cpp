// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/host_facts.hpp"
#include "core/base/launcher_channel.hpp"
#include "core/base/parse.hpp"

namespace npushmem {

namespace {

constexpr std::array<std::string_view, 5> level_names{"error", "warn", "info", "debug", "trace"};

LogLevel level_of(std::string_view name) {
    const auto found = std::find(level_names.begin(), level_names.end(), name);
    return found == level_names.end() ? LogLevel::warn : static_cast<LogLevel>(found - level_names.begin());
}

std::string expanded(const std::string& pattern) {
    std::string out;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const bool escape = pattern[i] == '%' && i + 1 < pattern.size();
        if (escape && pattern[i + 1] == 'h') {
            out += host_name();
            ++i;
        } else if (escape && pattern[i + 1] == 'p') {
            out += std::to_string(getpid());
            ++i;
        } else {
            out += pattern[i];
        }
    }
    return out;
}

}  // namespace

Result<Log> Log::open(const Settings& settings) {
    // Reads the launcher's variables before any other thread writes a line.
    (void)LauncherChannel::own_pe();
    Log log;
    log.level_ = level_of(settings.debug);
    log.subsystems_ = split(settings.debug_subsys, ',');
    if (settings.debug_file.empty()) return log;
    const std::string path = expanded(settings.debug_file);
    log.file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!log.file_.valid())
        return Status{Code::config,
                      fmt::format("NPUSHMEM_DEBUG_FILE: cannot open '{}': {}", path, std::strerror(errno))};
    return log;
}

bool Log::enabled(LogLevel level, std::string_view subsystem) const {
    if (level > level_) return false;
    if (level <= LogLevel::warn || subsystems_.empty()) return true;
    return std::find(subsystems_.begin(), subsystems_.end(), subsystem) != subsystems_.end();
}

namespace {

// npushmem-run prints the line, merged with equal lines of other PEs.
bool sent_to_launcher(const std::string& prefix, const std::string& event) {
    const LauncherChannel launcher = LauncherChannel::of_process();
    return launcher.has_launcher_stderr() &&
           launcher.append({LauncherRecord::Kind::line, LauncherChannel::own_pe(), prefix, event});
}

}  // namespace

void Log::line(LogLevel level, std::string_view subsystem, std::string_view message) const {
    if (!enabled(level, subsystem)) return;
    const std::string event =
        fmt::format("{} {}: {}", level_names[static_cast<std::size_t>(level)], subsystem, message);
    // A log with more than warnings and errors stays in one place and in order.
    if (!file_.valid() && level_ <= LogLevel::warn && sent_to_launcher(prefix_, event)) return;
    const std::string text = fmt::format("npushmem{}{} {}\n", prefix_.empty() ? "" : " ", prefix_, event);
    // A failed write of the log cannot be reported.
    [[maybe_unused]] const auto written =
        ::write(file_.valid() ? file_.get() : STDERR_FILENO, text.data(), text.size());
}

}  // namespace npushmem
