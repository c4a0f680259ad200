// SPDX-License-Identifier: BSD-3-Clause
// One line on a terminal that shows how far a long run has come: "measuring put 64 KiB (12 of 40), 31 s left". It is
// rewritten in place, and removed at the end.
#pragma once

#include <chrono>
#include <cstddef>
#include <fstream>
#include <ostream>
#include <string>
#include <string_view>

#include "bench/engine/engine.hpp"

namespace npushmem::bench {

// One thread. Every call reads the clock, and few of them write: nothing is shown in the first seconds, and then at
// most five times per second. Call it between measurements, not within.
class ProgressLine {
public:
    // Writes to `out` if `is_shown`, otherwise nothing. Longer lines than `columns` are cut. Both references must
    // outlive this.
    ProgressLine(Clock& clock, std::ostream& out, bool is_shown, std::size_t columns = 79);
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    ~ProgressLine() { clear(); }

    // The run has `parts` parts of about equal length, and now begins the one with this number, from 0. By default it
    // has one.
    void begin_part(std::size_t part, std::size_t parts);
    // `done` of the part's `total` steps are over, and `activity` begins.
    void begin_step(std::string activity, std::size_t done, std::size_t total);
    // The same for steps of unequal lengths, whose share of the part (0 to 1) is over.
    void begin_step(std::string activity, std::size_t done, std::size_t total, double share);
    // `done` of `total` equal pieces of the current step are over.
    void advance(std::size_t done, std::size_t total);
    // Removes the line. Call it before other output; later calls show the line again.
    void clear();

private:
    void show(double share_of_step);
    [[nodiscard]] std::string text(double share, std::chrono::nanoseconds elapsed) const;

    Clock& clock_;
    std::ostream& out_;
    bool is_shown_;
    std::size_t columns_;
    std::chrono::nanoseconds begin_;
    std::chrono::nanoseconds next_;  // no output before
    std::size_t part_ = 0;
    std::size_t parts_ = 1;
    std::string activity_;
    std::size_t done_ = 0;
    std::size_t total_ = 1;
    double share_begin_ = 0;  // of the part, at the begin of the step
    double share_step_ = 0;   // of the part, that the step takes
    bool is_visible_ = false;
};

// "31 s", "12 min", "3 h".
std::string format_time_left(std::chrono::nanoseconds time);

// The terminal on which the user of this process sees its standard error. Under npushmem-run the PEs' standard error is
// a pipe to the launcher, which passes on whole lines only; then it is the launcher's terminal, if that runs on this
// host. There is none if the standard error is redirected elsewhere, or if TERM is "dumb".
class UserTerminal {
public:
    UserTerminal();
    // For tests: `error_file` is the standard error, `terminal_type` the value of TERM, and `launcher_error` the path
    // of the launcher's standard error; empty without a launcher.
    UserTerminal(int error_file, std::string_view terminal_type, const std::string& launcher_error);

    // Without a terminal, output vanishes.
    [[nodiscard]] bool is_terminal() const { return own_ || file_.is_open(); }
    [[nodiscard]] std::ostream& stream();
    // Length of the longest line that the terminal shows without a line break; 79 if its width is unknown.
    [[nodiscard]] std::size_t columns() const { return columns_; }

private:
    bool own_ = false;  // the standard error of this process is a terminal
    std::size_t columns_ = 79;
    std::ofstream file_;
};

// A progress line on the user's terminal. It shows nothing without a terminal, and nothing unless `is_reporter`.
class TerminalProgress {
public:
    explicit TerminalProgress(bool is_reporter)
        : line_(clock_, terminal_.stream(), is_reporter && terminal_.is_terminal(), terminal_.columns()) {}

    [[nodiscard]] ProgressLine& line() { return line_; }

private:
    SteadyClock clock_;
    UserTerminal terminal_;
    ProgressLine line_;
};

}  // namespace npushmem::bench
