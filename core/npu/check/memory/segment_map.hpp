// SPDX-License-Identifier: BSD-3-Clause
// A map from disjoint address ranges (segments) to values. An update that begins or ends inside a segment splits it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

namespace npushmem::npu::check {

template <class T, template <class> class Allocator = std::allocator>
class SegmentMap {
public:
    using Address = std::uintptr_t;

    // Splits the segments that extend beyond [begin, end), and fills each gap in the range with a new segment of value
    // T{}. Calls change(begin, end, T&) for every segment of the range, in ascending order.
    template <class Change>
    void update(Address begin, Address end, Change&& change) {
        auto at = split(begin);
        for (Address from = begin; from < end; ++at) {
            if (at == segments_.end() || at->first > from) {
                const Address until = at == segments_.end() ? end : std::min(end, at->first);
                at = segments_.emplace_hint(at, from, Segment{until, T{}});
            } else if (at->second.end > end) {
                segments_.emplace_hint(std::next(at), end, at->second);
                at->second.end = end;
            }
            change(from, at->second.end, at->second.value);
            from = at->second.end;
        }
    }

    // Calls use(begin, end, const T&) for every existing segment that overlaps [begin, end), in ascending order. Passes
    // bounds clipped to the range. Neither creates nor splits segments.
    template <class Use>
    void visit(Address begin, Address end, Use&& use) const {
        if (begin >= end) return;
        auto found = segments_.upper_bound(begin);
        if (found != segments_.begin() && std::prev(found)->second.end > begin) --found;
        for (; found != segments_.end() && found->first < end; ++found) {
            use(std::max(begin, found->first), std::min(end, found->second.end), found->second.value);
        }
    }

    // Replaces everything in [begin, end) with one segment of value `value`. Splits segments that extend beyond it.
    void assign(Address begin, Address end, T value) {
        if (begin >= end) return;
        auto at = split(begin);
        if (at != segments_.end() && at->first == begin && at->second.end == end) {
            at->second.value = std::move(value);
            return;
        }
        while (at != segments_.end() && at->first < end) {
            if (at->second.end > end) segments_.emplace_hint(std::next(at), end, std::move(at->second));
            at = segments_.erase(at);
        }
        segments_.emplace_hint(at, begin, Segment{end, std::move(value)});
    }

    void clear() { segments_.clear(); }
    [[nodiscard]] std::size_t size() const { return segments_.size(); }

private:
    struct Segment {
        Address end;
        T value;
    };

    // Splits a segment that contains `at` and begins before. Returns the first segment that does not begin before `at`.
    auto split(Address at) {
        auto next = segments_.lower_bound(at);
        if (next == segments_.begin()) return next;
        const auto before = std::prev(next);
        if (before->second.end <= at) return next;
        next = segments_.emplace_hint(next, at, before->second);
        before->second.end = at;
        return next;
    }

    std::map<Address, Segment, std::less<>, Allocator<std::pair<const Address, Segment>>> segments_;
};

}  // namespace npushmem::npu::check
