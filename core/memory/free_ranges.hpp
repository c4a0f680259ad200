// The free part of an address space, as disjoint ranges ordered by offset: "the lowest range that is at least this
// long" in O(log n). A treap whose nodes also know the longest range below them; nodes live in one vector, and their
// priorities come from a counter, so that the same calls build the same tree in every process.
//
// Invariant: no two ranges touch or overlap, no range is empty. The caller joins neighbours.
// Not thread safe. Units are whatever the caller counts in; the allocator counts bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace npushmem {

struct Range {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;

    [[nodiscard]] std::uint64_t end() const { return offset + size; }
    [[nodiscard]] bool contains(std::uint64_t at) const { return at >= offset && at < end(); }
    bool operator==(const Range&) const = default;
};

class FreeRanges {
public:
    void insert(Range range);
    // The range that begins at `offset`, which must exist, becomes `now`: it may shrink, grow or move, as long as it
    // keeps its place between its neighbours. An empty `now` removes it.
    void replace(std::uint64_t offset, Range now);

    // The lowest range of at least `size`.
    [[nodiscard]] std::optional<Range> first_fit(std::uint64_t size) const;
    // The lowest range that holds `size` at a multiple of `alignment`. Visits every range of at least `size` in the
    // worst case, so it is for requests that first_fit with room for padding cannot serve.
    [[nodiscard]] std::optional<Range> first_aligned_fit(std::uint64_t size, std::uint64_t alignment) const;
    // The last range that begins at or below `offset`, and the first that begins at or above it.
    [[nodiscard]] std::optional<Range> at_or_below(std::uint64_t offset) const;
    [[nodiscard]] std::optional<Range> at_or_above(std::uint64_t offset) const;

    [[nodiscard]] std::uint64_t longest() const { return longest_of(root_); }
    [[nodiscard]] std::size_t count() const { return nodes_.size() - spare_.size(); }
    // All ranges, lowest first.
    [[nodiscard]] std::vector<Range> list() const;

private:
    using Index = std::uint32_t;
    static constexpr Index none = 0xffffffffU;

    struct Node {
        Range range;
        std::uint64_t longest = 0;
        std::uint64_t priority = 0;
        Index left = none;
        Index right = none;
    };

    [[nodiscard]] std::uint64_t longest_of(Index at) const { return at == none ? 0 : nodes_[at].longest; }
    void refresh(Index at);
    Index make_node(Range range);
    // Below `offset` to the left, the rest to the right.
    void split(Index at, std::uint64_t offset, Index& left, Index& right);
    Index merge(Index left, Index right);
    Index inserted(Index at, Index node);
    Index replaced(Index at, std::uint64_t offset, Range now);
    void append_all(Index at, std::vector<Range>& out) const;
    [[nodiscard]] Index aligned_fit_below(Index at, std::uint64_t size, std::uint64_t alignment) const;

    std::vector<Node> nodes_;
    std::vector<Index> spare_;
    Index root_ = none;
    std::uint64_t made_ = 0;
};

}  // namespace npushmem
