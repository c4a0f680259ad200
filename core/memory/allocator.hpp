// SPDX-License-Identifier: BSD-3-Clause
// Allocates ranges of the symmetric heap, as offsets from its beginning. It never accesses the heap: all its state is
// in its own memory, so a program that writes past its arrays damages its data but not the allocator.
//
// Deterministic: the same sequence of calls returns the same offsets in every process. That makes the heap symmetric.
//
// Policy: address-ordered first fit in units of one granule (64 bytes); freed neighbours merge at once. Costs are O(log
// f) expected, f = number of free ranges. Fragmentation is bounded: with at most M live bytes at a time, in requests of
// at most s bytes at the default alignment, the heap in use never extends beyond about M * log2(2s / 64) bytes (Robson,
// 1977; best fit has no bound better than about M * s / 64). A request with a larger alignment `a` counts as one of
// size + a - 64.
//
// Not thread safe: allocation is collective, and the caller serializes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "npushmem/plugin/status.hpp"

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

struct AllocatorStatistics {
    std::uint64_t capacity = 0;
    std::uint64_t used = 0;          // in whole granules
    std::uint64_t free = 0;          // capacity - used
    std::uint64_t largest_free = 0;  // the longest free range
    std::uint64_t high_water = 0;    // the largest `used` so far
    std::uint64_t extent = 0;        // the highest end of an allocation so far: what lies beyond was never given out
    std::size_t allocations = 0;
    std::size_t free_ranges = 0;
};

class Allocator {
public:
    static constexpr std::uint64_t granule = 64;
    static constexpr std::uint64_t default_alignment = granule;

    // A heap of `capacity` bytes, rounded down to granules. Offset 0 is taken to be aligned to every requested
    // alignment; the owner of the heap sees to that for the alignments it allows.
    explicit Allocator(std::uint64_t capacity);

    // The offset of `bytes` fresh bytes at a multiple of `alignment` (a power of two; less than 64 counts as 64).
    // Code::argument: zero bytes, not a power of two. Code::memory: no room; the message has the numbers.
    Result<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment = default_alignment);

    // Code::argument when `offset` is not the beginning of an allocation; the message describes what lies there
    // instead.
    Status free(std::uint64_t offset);

    // The bytes requested at allocate or the last resize. Code::argument as for free.
    [[nodiscard]] Result<std::uint64_t> size_of(std::uint64_t offset) const;

    // Bytes that are given out, in whole granules.
    [[nodiscard]] std::uint64_t used() const { return used_; }

    // Changes an allocation's size where it stands. Code::memory when what follows is not free or too short; then
    // nothing has changed. Code::argument for zero bytes and as for free.
    Status resize(std::uint64_t offset, std::uint64_t bytes);

    // The allocation that `offset` points into, if any: O(number of allocations), for messages.
    [[nodiscard]] std::optional<Range> containing(std::uint64_t offset) const;

    [[nodiscard]] AllocatorStatistics statistics() const;
    [[nodiscard]] const FreeRanges& free_ranges() const { return free_; }

private:
    [[nodiscard]] std::optional<Range> find_room(std::uint64_t size, std::uint64_t alignment) const;
    void take(const Range& from, const Range& part);
    void release(Range range);
    void count_used(std::uint64_t end);
    [[nodiscard]] Status exhausted(std::uint64_t bytes, std::uint64_t alignment) const;
    [[nodiscard]] Status no_room_behind(std::uint64_t offset, std::uint64_t bytes) const;
    [[nodiscard]] Status not_an_allocation(const char* what, std::uint64_t offset) const;

    std::uint64_t capacity_;
    std::uint64_t used_ = 0;
    std::uint64_t high_water_ = 0;
    std::uint64_t extent_ = 0;
    FreeRanges free_;
    std::unordered_map<std::uint64_t, std::uint64_t> size_by_offset_;  // as requested, not rounded
};

}  // namespace npushmem
