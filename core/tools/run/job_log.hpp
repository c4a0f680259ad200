// SPDX-License-Identifier: BSD-3-Clause
// Records of PEs: the log that carries them to the launcher, and the text that the user reads.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/launcher_channel.hpp"
#include "core/base/poller.hpp"

namespace npushmem::run {

// The launcher's end of the log that core/base/launcher_channel.hpp describes. Launcher, supervisor and PEs share the
// file; launcher and supervisor also share a position in it, up to which the user has seen everything. When the
// launcher has ended, the supervisor shows the rest.
class JobLog {
public:
    // The log is not open without memory or descriptors for it, or above the limit of file sizes: PEs then write to
    // standard error themselves.
    static JobLog create(int pes);
    JobLog() = default;

    [[nodiscard]] bool open() const { return file_.valid(); }
    // Returns the end of NPUSHMEM_LAUNCHER_FD that describes this log to the PE with this index; `errors`: the
    // descriptor that becomes its standard error. Empty when the log is not open.
    [[nodiscard]] std::string description(int index, int errors) const;

    // Returns the complete records since the last call.
    std::vector<LauncherRecord> read();
    // All records that were read have been shown: frees their memory.
    void mark_shown();
    // From now on the launcher alone shows records.
    void claim_for_launcher();
    // For the supervisor: the next read begins after the records that have been shown.
    void continue_after_launcher();

    // By index, without PEs that had none.
    [[nodiscard]] std::map<int, std::int64_t> failed_calls() const;

private:
    void free_up_to(std::int64_t position);

    FileDescriptor file_;
    FileDescriptor
        position_;  // its file position is the one that launcher and supervisor share; not open without /proc
    int pes_ = 0;
    std::int64_t read_to_ = 0;
    std::int64_t freed_to_ = 0;
    std::string rest_;  // incomplete record
    bool claimed_ = false;
};

// Merges equal lines of several PEs, and keeps the launcher's messages after the lines that they refer to. Pure: time
// is an argument.

// Formats a line as a PE without a launcher writes it, or a message as npushmem-run writes it.
std::string text_of(const LauncherRecord& record);

// "0-3,5": the numbers in order, as ranges.
std::string ranges_of(const std::set<int>& numbers);

class Diagnostics {
public:
    using Time = std::chrono::steady_clock::time_point;

    // A line waits this long for the same line of another PE, and no longer than `limit` after the first that waits.
    static constexpr std::chrono::milliseconds merge_window{100};
    static constexpr std::chrono::milliseconds limit{1000};

    // `tagged`: a line of one PE gets the tag that the PE's output has.
    Diagnostics(int npes, bool tagged) : npes_(npes), tagged_(tagged) {}

    // Adds a line, or a message of the launcher, which is shown after all lines that wait.
    void add(const LauncherRecord& record, Time now);

    [[nodiscard]] bool empty() const { return lines_.empty() && messages_.empty(); }
    // When take() returns the waiting text; none: nothing waits.
    [[nodiscard]] std::optional<Time> deadline() const;
    // Returns the text that is due; may be empty.
    std::string take(Time now);
    std::string take_all();

private:
    struct Line {
        std::string text;
        std::string prefix;  // of the first PE
        std::set<int> pes;   // each once; empty when the PE is not known
    };

    void add_line(const LauncherRecord& line, Time now);
    // A PE whose start fails because another PE has aborted the job repeats the other's failure: it joins that line.
    void merge_consequences();
    [[nodiscard]] bool all_have_reported() const;
    [[nodiscard]] std::string shown(const Line& line) const;

    int npes_;
    bool tagged_;
    std::vector<Line> lines_;
    std::unordered_map<std::string, std::vector<std::size_t>> places_;  // of a text's lines
    std::size_t incomplete_ = 0;                                        // lines that some PE has not reported
    std::string messages_;
    Time first_{};
    Time latest_{};
};

// "3 calls failed (1 on PE 0, 2 on PE 5)".
std::string describe_failed_calls(const std::map<int, std::int64_t>& calls);

}  // namespace npushmem::run
