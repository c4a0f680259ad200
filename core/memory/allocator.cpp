// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/base/hash.hpp"

namespace npushmem {

namespace {

bool fits_aligned(const Range& range, std::uint64_t size, std::uint64_t alignment) {
    const std::uint64_t padding = (alignment - range.offset % alignment) % alignment;
    return padding <= range.size && range.size - padding >= size;
}

}  // namespace

void FreeRanges::refresh(Index at) {
    Node& node = nodes_[at];
    node.longest = std::max({node.range.size, longest_of(node.left), longest_of(node.right)});
}

FreeRanges::Index FreeRanges::make_node(Range range) {
    // Pseudo-random priorities keep the expected depth of the treap logarithmic for every sequence of calls.
    const Node node{range, range.size, mixed(made_++), none, none};
    if (spare_.empty()) {
        nodes_.push_back(node);
        // Reserves room for when this node becomes spare, so that removing a range cannot fail.
        spare_.reserve(nodes_.capacity());
        return static_cast<Index>(nodes_.size() - 1);
    }
    const Index at = spare_.back();
    spare_.pop_back();
    nodes_[at] = node;
    return at;
}

void FreeRanges::split(Index at, std::uint64_t offset, Index& left, Index& right) {
    if (at == none) {
        left = right = none;
        return;
    }
    Node& node = nodes_[at];
    if (node.range.offset < offset) {
        split(node.right, offset, node.right, right);
        left = at;
    } else {
        split(node.left, offset, left, node.left);
        right = at;
    }
    refresh(at);
}

FreeRanges::Index FreeRanges::merge(Index left, Index right) {
    if (left == none) return right;
    if (right == none) return left;
    const bool left_on_top = nodes_[left].priority > nodes_[right].priority;
    const Index top = left_on_top ? left : right;
    if (left_on_top) {
        nodes_[left].right = merge(nodes_[left].right, right);
    } else {
        nodes_[right].left = merge(left, nodes_[right].left);
    }
    refresh(top);
    return top;
}

FreeRanges::Index FreeRanges::inserted(Index at, Index node) {
    if (at == none) return node;
    if (nodes_[node].priority > nodes_[at].priority) {
        split(at, nodes_[node].range.offset, nodes_[node].left, nodes_[node].right);
        refresh(node);
        return node;
    }
    const bool below = nodes_[node].range.offset < nodes_[at].range.offset;
    Index& child = below ? nodes_[at].left : nodes_[at].right;
    child = inserted(child, node);
    refresh(at);
    return at;
}

void FreeRanges::insert(Range range) {
    const Index node = make_node(range);
    root_ = inserted(root_, node);
}

FreeRanges::Index FreeRanges::replaced(Index at, std::uint64_t offset, Range now) {
    Node& node = nodes_[at];
    if (offset < node.range.offset) {
        node.left = replaced(node.left, offset, now);
    } else if (offset > node.range.offset) {
        node.right = replaced(node.right, offset, now);
    } else if (now.size == 0) {
        spare_.push_back(at);
        return merge(node.left, node.right);
    } else {
        node.range = now;
    }
    refresh(at);
    return at;
}

void FreeRanges::replace(std::uint64_t offset, Range now) { root_ = replaced(root_, offset, now); }

std::optional<Range> FreeRanges::first_fit(std::uint64_t size) const {
    if (longest() < size) return std::nullopt;
    Index at = root_;
    for (;;) {
        const Node& node = nodes_[at];
        if (longest_of(node.left) >= size) {
            at = node.left;
        } else if (node.range.size >= size) {
            return node.range;
        } else {
            at = node.right;
        }
    }
}

FreeRanges::Index FreeRanges::aligned_fit_below(Index at, std::uint64_t size, std::uint64_t alignment) const {
    if (longest_of(at) < size) return none;
    const Node& node = nodes_[at];
    const Index left = aligned_fit_below(node.left, size, alignment);
    if (left != none) return left;
    if (fits_aligned(node.range, size, alignment)) return at;
    return aligned_fit_below(node.right, size, alignment);
}

std::optional<Range> FreeRanges::first_aligned_fit(std::uint64_t size, std::uint64_t alignment) const {
    const Index at = aligned_fit_below(root_, size, alignment);
    return at == none ? std::nullopt : std::optional(nodes_[at].range);
}

std::optional<Range> FreeRanges::at_or_below(std::uint64_t offset) const {
    std::optional<Range> best;
    for (Index at = root_; at != none;) {
        const Node& node = nodes_[at];
        const bool candidate = node.range.offset <= offset;
        if (candidate) best = node.range;
        at = candidate ? node.right : node.left;
    }
    return best;
}

std::optional<Range> FreeRanges::at_or_above(std::uint64_t offset) const {
    std::optional<Range> best;
    for (Index at = root_; at != none;) {
        const Node& node = nodes_[at];
        const bool candidate = node.range.offset >= offset;
        if (candidate) best = node.range;
        at = candidate ? node.left : node.right;
    }
    return best;
}

void FreeRanges::append_all(Index at, std::vector<Range>& out) const {
    if (at == none) return;
    append_all(nodes_[at].left, out);
    out.push_back(nodes_[at].range);
    append_all(nodes_[at].right, out);
}

std::vector<Range> FreeRanges::list() const {
    std::vector<Range> out;
    out.reserve(count());
    append_all(root_, out);
    return out;
}

namespace {

// Sizes above this would overflow when rounded or padded; no heap is that large.
constexpr std::uint64_t largest_request = std::uint64_t{1} << 62;

std::uint64_t in_granules(std::uint64_t bytes) {
    return (bytes + Allocator::granule - 1) / Allocator::granule * Allocator::granule;
}

std::uint64_t aligned_up(std::uint64_t offset, std::uint64_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace

Allocator::Allocator(std::uint64_t capacity) : capacity_(capacity / granule * granule) {
    if (capacity_ > 0) free_.insert({0, capacity_});
}

std::optional<Range> Allocator::find_room(std::uint64_t size, std::uint64_t alignment) const {
    if (alignment == granule) return free_.first_fit(size);
    const auto padded = free_.first_fit(size + alignment - granule);
    return padded ? padded : free_.first_aligned_fit(size, alignment);
}

// Removes `part` from the free range `from` that contains it.
void Allocator::take(const Range& from, const Range& part) {
    const Range before{from.offset, part.offset - from.offset};
    const Range after{part.end(), from.end() - part.end()};
    if (before.size == 0) {
        free_.replace(from.offset, after);
        return;
    }
    if (after.size > 0) free_.insert(after);
    free_.replace(from.offset, before);
}

// Adds a range to the free ranges and merges it with those that touch it.
void Allocator::release(Range range) {
    const auto below = free_.at_or_below(range.offset);
    const auto above = free_.at_or_above(range.offset);
    const bool joins_below = below && below->end() == range.offset;
    const bool joins_above = above && above->offset == range.end();
    if (joins_below && joins_above) {
        free_.replace(above->offset, {});
        free_.replace(below->offset, {below->offset, below->size + range.size + above->size});
    } else if (joins_below) {
        free_.replace(below->offset, {below->offset, below->size + range.size});
    } else if (joins_above) {
        free_.replace(above->offset, {range.offset, range.size + above->size});
    } else {
        free_.insert(range);
    }
}

void Allocator::count_used(std::uint64_t end) {
    high_water_ = std::max(high_water_, used_);
    extent_ = std::max(extent_, end);
}

Result<std::uint64_t> Allocator::allocate(std::uint64_t bytes, std::uint64_t alignment) {
    if (bytes == 0) return Status{Code::argument, "cannot allocate zero bytes of the symmetric heap"};
    if (!std::has_single_bit(alignment)) {
        return Status{Code::argument,
                      fmt::format("alignment {} of a symmetric allocation of {} bytes is not a power of "
                                  "two",
                                  alignment, bytes)};
    }
    alignment = std::max(alignment, granule);
    if (bytes > largest_request || alignment > largest_request) return exhausted(bytes, alignment);
    const std::uint64_t size = in_granules(bytes);
    const auto room = find_room(size, alignment);
    if (!room) return exhausted(bytes, alignment);

    const Range part{aligned_up(room->offset, alignment), size};
    size_by_offset_.emplace(part.offset, bytes);
    take(*room, part);
    used_ += size;
    count_used(part.end());
    return part.offset;
}

Status Allocator::free(std::uint64_t offset) {
    const auto found = size_by_offset_.find(offset);
    if (found == size_by_offset_.end()) return not_an_allocation("free", offset);
    const Range range{offset, in_granules(found->second)};
    release(range);
    size_by_offset_.erase(found);
    used_ -= range.size;
    return {};
}

Result<std::uint64_t> Allocator::size_of(std::uint64_t offset) const {
    const auto found = size_by_offset_.find(offset);
    if (found == size_by_offset_.end()) return not_an_allocation("find the size of", offset);
    return found->second;
}

Status Allocator::resize(std::uint64_t offset, std::uint64_t bytes) {
    const auto found = size_by_offset_.find(offset);
    if (found == size_by_offset_.end()) return not_an_allocation("resize", offset);
    if (bytes == 0) return {Code::argument, fmt::format("cannot resize the allocation at {:#x} to zero bytes", offset)};
    if (bytes > largest_request) return no_room_behind(offset, bytes);

    const Range old{offset, in_granules(found->second)};
    const Range now{offset, in_granules(bytes)};
    if (now.size < old.size) {
        release({now.end(), old.size - now.size});
    } else if (now.size > old.size) {
        const auto behind = free_.at_or_above(old.end());
        if (!behind || behind->offset != old.end() || behind->end() < now.end()) return no_room_behind(offset, bytes);
        take(*behind, {old.end(), now.size - old.size});
    }
    found->second = bytes;
    used_ += now.size - old.size;  // modulo 2^64, so a shrink subtracts
    count_used(now.end());
    return {};
}

std::optional<Range> Allocator::containing(std::uint64_t offset) const {
    for (const auto& [begin, bytes] : size_by_offset_) {
        const Range range{begin, in_granules(bytes)};
        if (range.contains(offset)) return Range{begin, bytes};
    }
    return std::nullopt;
}

AllocatorStatistics Allocator::statistics() const {
    return {capacity_,   used_,   capacity_ - used_,      free_.longest(),
            high_water_, extent_, size_by_offset_.size(), free_.count()};
}

Status Allocator::exhausted(std::uint64_t bytes, std::uint64_t alignment) const {
    return {
        Code::memory,
        fmt::format("the symmetric heap has no room for {} bytes aligned to {}: {} of {} bytes are free, the largest "
                    "free block has {}; set NPUSHMEM_SYMMETRIC_SIZE higher or free something first",
                    bytes, alignment, capacity_ - used_, capacity_, free_.longest())};
}

Status Allocator::no_room_behind(std::uint64_t offset, std::uint64_t bytes) const {
    return {Code::memory,
            fmt::format("the allocation at {:#x} cannot grow in place to {} bytes: the memory after it is in use "
                        "or the end of the heap",
                        offset, bytes)};
}

Status Allocator::not_an_allocation(const char* what, std::uint64_t offset) const {
    const auto text = [&](std::string_view lies) {
        return Status{Code::argument,
                      fmt::format("cannot {} offset {:#x} of the symmetric heap: {}", what, offset, lies)};
    };
    if (offset >= capacity_) return text(fmt::format("the heap has only {:#x} bytes", capacity_));
    if (const auto around = containing(offset)) {
        return text(fmt::format("it lies inside the allocation of {} bytes at {:#x}, not at its beginning",
                                around->size, around->offset));
    }
    return text("nothing is allocated there (freed twice, or never allocated)");
}

}  // namespace npushmem
