#include "core/memory/commit_map.hpp"

namespace npushmem {

std::vector<CommitMap::Range> CommitMap::missing(std::uint64_t offset, std::uint64_t bytes) const {
    std::vector<Range> ranges;
    const std::uint64_t last = (offset + bytes + unit - 1) / unit;
    for (std::uint64_t i = offset / unit; i < last; ++i) {
        if (committed_[i]) continue;
        const bool adjacent = !ranges.empty() && ranges.back().offset + ranges.back().bytes == i * unit;
        if (adjacent)
            ranges.back().bytes += unit;
        else
            ranges.push_back({i * unit, unit});
    }
    return ranges;
}

void CommitMap::mark(const Range& range, bool committed) {
    for (std::uint64_t i = range.offset / unit; i < (range.offset + range.bytes) / unit; ++i) {
        if (committed_[i] == committed) continue;
        committed_[i] = committed;
        committed ? ++units_ : --units_;
    }
}

CommitMap::Range CommitMap::inside(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t first = (offset + unit - 1) / unit * unit;
    const std::uint64_t end = (offset + bytes) / unit * unit;
    return {first, end > first ? end - first : 0};
}

}  // namespace npushmem
