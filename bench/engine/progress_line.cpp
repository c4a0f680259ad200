// SPDX-License-Identifier: BSD-3-Clause
#include "bench/engine/progress_line.hpp"

#include <fcntl.h>
#include <fmt/format.h>
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

bool is_terminal_file(const std::string& path) {
    const int file = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (file < 0) return false;
    const bool terminal = ::isatty(file) != 0;
    ::close(file);
    return terminal;
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

UserTerminal::UserTerminal() : own_(::isatty(STDERR_FILENO) != 0) {
    if (own_ || std::getenv("NPUSHMEM_LAUNCHER_FD") == nullptr) return;  // NOLINT(concurrency-mt-unsafe)
    const std::string launcher = fmt::format("/proc/{}/fd/2", ::getppid());
    if (is_terminal_file(launcher)) file_.open(launcher, std::ios::app);
}

std::ostream& UserTerminal::stream() {
    if (own_) return std::cerr;
    return file_;
}

}  // namespace npushmem::bench
