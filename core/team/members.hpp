// Who belongs to a team, by index: PEs at equal distances, which need no memory, or any others, each once, by a list
// that copies of this share. Immutable.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/liveness.hpp"

namespace npushmem {

class Members {
public:
    Members() = default;
    // PEs at equal distances; the range has no table.
    Members(const PeRange& strided) : range_(strided) {}  // implicit: such a range is all that most teams are
    // Any PEs, each once and at least one. Those at equal distances become a range without a table.
    static Members listed(std::vector<int> pes);

    // For waits and for whoever goes through them; as long as this, or a copy, lives.
    [[nodiscard]] const PeRange& range() const { return range_; }
    [[nodiscard]] int count() const { return range_.count; }
    [[nodiscard]] int at(int index) const { return range_.at(index); }
    // The index of a world PE; -1 when it is none of them.
    [[nodiscard]] int index_of(int world_pe) const;
    // Those of index `start`, `start` + `stride`, ..., `count` of them.
    [[nodiscard]] Members every(int start, int stride, int count) const;
    // The same for the same PEs in the same order; of PEs at equal distances, 0.
    [[nodiscard]] std::uint32_t list_hash() const;
    // "PEs 1 to 7, every 2", "PEs 5, 0, 3"
    [[nodiscard]] std::string text() const;

private:
    struct List {
        std::vector<int> pes;
        std::vector<std::pair<int, int>> places;  // a PE and its index, by PE
    };

    PeRange range_;
    std::shared_ptr<const List> list_;  // what range_.table points into; null without one
};

}  // namespace npushmem
