// SPDX-License-Identifier: BSD-3-Clause
// What explorations have learnt about the wait loops of a program: whether they end by themselves.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/npu/source_line.hpp"

namespace npushmem::npu::check::explore {

// Of each loop, by the source line of its last read. A loop that has once repeated max_polls reads alone counts as one
// that never ends, unless it has ended behind more than short_polls before. All bytes 0: nothing is known. It may lie
// in memory that processes share; one thread of all uses it at a time.
class LoopBounds {
public:
    // So many reads a loop repeats before it counts as one that never ends.
    static constexpr std::uint64_t max_polls = 1 << 20;
    // So many reads such a loop repeats while other threads can run.
    static constexpr std::uint64_t short_polls = 4096;

    // So often a loop goes on alone that does more than it repeats alone.
    static constexpr int max_ended_grants = 16;

    [[nodiscard]] static std::uint64_t line_of(const SourceLocation& where) {
        std::uint64_t hash = where.line();
        for (const char* at = where.file_name(); *at != 0; ++at)
            hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3U;
        return hash | 1;
    }
    // The reads that a loop shall repeat alone.
    [[nodiscard]] std::uint64_t grant_for(std::uint64_t line) const {
        return contains(endless_, line) ? short_polls : max_polls;
    }
    // The loop has ended, or done something else, behind so many reads of a grant.
    void ended_behind(std::uint64_t line, std::uint64_t polls) {
        if (polls > short_polls) add(ending_, line);
    }
    // The loop has used up a grant of so many reads.
    void used_up(std::uint64_t line, std::uint64_t polls) {
        if (polls >= max_polls && !contains(ending_, line)) add(endless_, line);
    }
    // Records a loop that has not been explored to its end, by a line for people. Keeps the first one.
    void cut(std::string_view where) {
        if (is_cut()) return;
        const std::size_t length = std::min(where.size(), cut_.size() - 1);
        std::memcpy(cut_.data(), where.data(), length);
        cut_[length] = 0;
    }
    [[nodiscard]] bool is_cut() const { return cut_[0] != 0; }
    [[nodiscard]] std::string_view cut_line() const { return cut_.data(); }

private:
    static constexpr std::size_t max_lines = 128;  // what does not fit stays unknown
    using Lines = std::array<std::uint64_t, max_lines>;

    [[nodiscard]] static bool contains(const Lines& lines, std::uint64_t line) {
        return std::ranges::find(lines, line) != lines.end();
    }
    static void add(Lines& lines, std::uint64_t line) {
        if (contains(lines, line)) return;
        if (const auto free = std::ranges::find(lines, 0U); free != lines.end()) *free = line;
    }

    Lines endless_;
    Lines ending_;
    std::array<char, 256> cut_;
};

}  // namespace npushmem::npu::check::explore
