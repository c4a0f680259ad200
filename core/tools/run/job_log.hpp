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
#include "core/tools/run/fd.hpp"

namespace npushmem::run {

// The launcher's end of the log that core/base/launcher_channel.hpp describes. Launcher, supervisor and PEs share the
// file; launcher and supervisor also share a position in it: everything before has been shown to the user. When the
// launcher is gone, the supervisor shows the rest.
class JobLog {
public:
    // Without memory or descriptors for it, or above the limit of file sizes, the log is not open: PEs then write to
    // standard error themselves.
    static JobLog create(int pes);
    JobLog() = default;

    [[nodiscard]] bool open() const { return file_.open(); }
    // The part of NPUSHMEM_LAUNCHER_FD that leads the PE with this index here; `errors`: the descriptor that becomes
    // its standard error. Empty when the log is not open.
    [[nodiscard]] std::string description(int index, int errors) const;

    // Whole records that have come since the last call.
    std::vector<LauncherRecord> read();
    // Everything that was read has been shown: its memory is freed.
    void mark_shown();
    // The launcher shows all records, also those that come later.
    void claim_for_launcher();
    // For the supervisor: the next read begins behind what has been shown.
    void continue_after_launcher();

    // By index; without those of PEs that had none.
    [[nodiscard]] std::map<int, std::int64_t> failed_calls() const;

private:
    void free_up_to(std::int64_t position);

    Fd file_;
    Fd position_;  // its file position is the one that launcher and supervisor share; not open without /proc
    int pes_ = 0;
    std::int64_t read_to_ = 0;
    std::int64_t freed_to_ = 0;
    std::string rest_;  // of a record that is not complete
    bool claimed_ = false;
};

// Merges the lines that several PEs report alike, and keeps the launcher's own messages behind what they refer to.
// Pure: time is an argument.

// A line as a PE writes it where there is no launcher, or a message as npushmem-run writes it.
std::string text_of(const LauncherRecord& record);

// "0-3,5": the numbers in order, neighbours joined.
std::string ranges_of(const std::set<int>& numbers);

class Diagnostics {
public:
    using Time = std::chrono::steady_clock::time_point;

    // A line waits this long for the same line of another PE, and no longer than `limit` after the first that waits.
    static constexpr std::chrono::milliseconds merge_window{100};
    static constexpr std::chrono::milliseconds limit{1000};

    // `tagged`: a line of one PE gets the tag that the PE's output has.
    Diagnostics(int npes, bool tagged) : npes_(npes), tagged_(tagged) {}

    // A line, or a message of the launcher, which is shown behind all lines that wait.
    void add(const LauncherRecord& record, Time now);

    [[nodiscard]] bool empty() const { return lines_.empty() && messages_.empty(); }
    // When take() returns what waits; none: nothing waits.
    [[nodiscard]] std::optional<Time> deadline() const;
    // What is due, as text; empty otherwise.
    std::string take(Time now);
    std::string take_all();

private:
    struct Line {
        std::string text;
        std::string prefix;  // of the first PE
        std::set<int> pes;   // each once; empty when the PE is not known
    };

    void add_line(const LauncherRecord& line, Time now);
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
