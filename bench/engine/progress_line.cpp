// SPDX-License-Identifier: BSD-3-Clause
#include "bench/engine/progress_line.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace npushmem::bench {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds quiet_time = std::chrono::seconds(2);
constexpr nanoseconds interval = std::chrono::milliseconds(200);
constexpr const char* erase_line = "\r\x1b[K";

double ratio_of(std::size_t done, std::size_t total) {
    return total == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
}

bool is_pipe(int file) {
    struct stat facts {};
    return ::fstat(file, &facts) == 0 && S_ISFIFO(facts.st_mode);
}

// A line that fills the last column would wrap on some terminals.
std::size_t columns_of(int file, std::size_t otherwise) {
    winsize size{};
    return ::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : otherwise;
}

std::string text_of_variable(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? "" : value;
}

}  // namespace

ProgressLine::ProgressLine(Clock& clock, std::ostream& out, bool is_shown, std::size_t columns)
    : clock_(clock),
      out_(out),
      is_shown_(is_shown),
      columns_(columns),
      begin_(clock.now()),
      next_(begin_ + quiet_time) {}

void ProgressLine::begin_part(std::size_t part, std::size_t parts) {
    part_ = part;
    parts_ = std::max<std::size_t>(parts, 1);
}

void ProgressLine::begin_step(std::string activity, std::size_t done, std::size_t total) {
    begin_step(std::move(activity), done, total, ratio_of(done, total));
    share_step_ = ratio_of(1, total);
}

void ProgressLine::begin_step(std::string activity, std::size_t done, std::size_t total, double share) {
    activity_ = std::move(activity);
    done_ = done;
    total_ = total;
    share_begin_ = share;
    share_step_ = 0;
    show(0);
}

void ProgressLine::advance(std::size_t done, std::size_t total) { show(ratio_of(done, total)); }

void ProgressLine::show(double share_of_step) {
    if (!is_shown_) return;
    const nanoseconds now = clock_.now();
    if (now < next_) return;
    next_ = now + interval;
    const double share_of_part = share_begin_ + share_step_ * share_of_step;
    const double share = (static_cast<double>(part_) + share_of_part) / static_cast<double>(parts_);
    out_ << erase_line << text(share, now - begin_) << std::flush;
    is_visible_ = true;
}

std::string ProgressLine::text(double share, nanoseconds elapsed) const {
    std::string line = fmt::format("{} ({} of {}", activity_, done_ + 1, total_);
    if (parts_ > 1) line += fmt::format(", part {} of {}", part_ + 1, parts_);
    line += ')';
    if (share > 0) {
        constexpr double longest = 1e18;  // nanoseconds; more would overflow
        const double left = static_cast<double>(elapsed.count()) * ((1 - share) / share);
        line +=
            fmt::format(", {} left", format_time_left(nanoseconds(static_cast<std::int64_t>(std::min(left, longest)))));
    }
    return line.substr(0, columns_);
}

void ProgressLine::clear() {
    if (is_visible_) out_ << erase_line << std::flush;
    is_visible_ = false;
}

std::string format_time_left(nanoseconds time) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::max(time, nanoseconds{0})).count();
    constexpr std::int64_t minute = 60;
    constexpr std::int64_t hour = 60 * minute;
    if (seconds < 2 * minute) return fmt::format("{} s", seconds);
    if (seconds < 2 * hour) return fmt::format("{} min", (seconds + minute / 2) / minute);
    return fmt::format("{} h", (seconds + hour / 2) / hour);
}

UserTerminal::UserTerminal()
    : UserTerminal(STDERR_FILENO, text_of_variable("TERM"),
                   text_of_variable("NPUSHMEM_LAUNCHER_FD").empty() ? "" : fmt::format("/proc/{}/fd/2", ::getppid())) {}

UserTerminal::UserTerminal(int error_file, std::string_view terminal_type, const std::string& launcher_error) {
    if (terminal_type == "dumb") return;
    own_ = ::isatty(error_file) != 0;
    if (own_) columns_ = columns_of(error_file, columns_);
    if (own_ || launcher_error.empty() || !is_pipe(error_file)) return;
    const int launcher = ::open(launcher_error.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (launcher < 0) return;
    if (::isatty(launcher) != 0) {
        columns_ = columns_of(launcher, columns_);
        file_.open(launcher_error, std::ios::app);
    }
    ::close(launcher);
}

std::ostream& UserTerminal::stream() {
    if (own_) return std::cerr;
    return file_;
}

}  // namespace npushmem::bench
