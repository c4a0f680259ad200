#include "core/memory/free_ranges.hpp"

#include <algorithm>

namespace npushmem {
namespace {

// A bijection with well mixed bits (the finalizer of a 64-bit hash): successive numbers become priorities that look
// random, which keeps the expected depth of the treap logarithmic whatever the caller does.
std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

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
    const Node node{range, range.size, mixed(made_++), none, none};
    if (spare_.empty()) {
        nodes_.push_back(node);
        // Room for the day this node becomes spare, so that removing a range cannot fail.
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

}  // namespace npushmem
