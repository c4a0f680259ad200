// Merges the lines that several PEs report alike, and keeps the launcher's own messages behind what they refer to.
// Pure: time is an argument.
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

namespace npushmem::run {

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
