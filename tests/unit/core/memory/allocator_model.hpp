// The allocator as anybody would write it first: one byte-granule map, searched from the left. Slow and obviously
// right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/memory/free_ranges.hpp"

namespace npushmem::testing {

class AllocatorModel {
public:
    explicit AllocatorModel(std::uint64_t granules) : taken_(granules, false) {}

    // The lowest place for `count` granules at a multiple of `alignment` granules. `padded` asks as the allocator does
    // first: for a free range with room for the worst padding.
    [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t count, std::uint64_t alignment) const {
        for (const std::uint64_t room : {count + alignment - 1, count}) {
            for (const Range& range : free_ranges()) {
                const std::uint64_t at = (range.offset + alignment - 1) / alignment * alignment;
                if (range.size >= room && at + count <= range.end()) return at;
            }
        }
        return std::nullopt;
    }

    void mark(std::uint64_t at, std::uint64_t count, bool taken) {
        std::fill_n(taken_.begin() + static_cast<std::ptrdiff_t>(at), count, taken);
    }

    [[nodiscard]] bool all_free(std::uint64_t at, std::uint64_t count) const {
        if (at + count > taken_.size()) return false;
        const auto begin = taken_.begin() + static_cast<std::ptrdiff_t>(at);
        return std::none_of(begin, begin + static_cast<std::ptrdiff_t>(count), [](bool taken) { return taken; });
    }

    // Maximal runs of free granules.
    [[nodiscard]] std::vector<Range> free_ranges() const {
        std::vector<Range> out;
        for (std::uint64_t i = 0; i < taken_.size(); ++i) {
            if (taken_[i]) continue;
            if (out.empty() || out.back().end() != i) out.push_back({i, 0});
            ++out.back().size;
        }
        return out;
    }

private:
    std::vector<bool> taken_;
};

}  // namespace npushmem::testing
