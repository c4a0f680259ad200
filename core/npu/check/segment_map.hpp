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
        if (T* whole = exactly(begin, end); whole != nullptr) return change(begin, end, *whole);
        split(begin);
        split(end);
        for (Address at = begin; at < end;) {
            auto found = segments_.lower_bound(at);
            if (found == segments_.end() || found->first > at) {
                const Address until = found == segments_.end() ? end : std::min(end, found->first);
                found = segments_.emplace_hint(found, at, Segment{until, T{}});
            }
            change(at, found->second.end, found->second.value);
            at = found->second.end;
        }
    }

    // Calls use(begin, end, const T&) for every existing segment that overlaps [begin, end), in ascending order. Passes
    // bounds clipped to the range. Neither creates nor splits segments.
    template <class Use>
    void visit(Address begin, Address end, Use&& use) const {
        auto found = segments_.upper_bound(begin);
        if (found != segments_.begin() && std::prev(found)->second.end > begin) --found;
        for (; found != segments_.end() && found->first < end; ++found) {
            use(std::max(begin, found->first), std::min(end, found->second.end), found->second.value);
        }
    }

    // Replaces everything in [begin, end) with one segment of value `value`. Splits segments that extend beyond it.
    void assign(Address begin, Address end, T value) {
        if (T* whole = exactly(begin, end); whole != nullptr) {
            *whole = std::move(value);
            return;
        }
        split(begin);
        split(end);
        segments_.erase(segments_.lower_bound(begin), segments_.lower_bound(end));
        segments_.emplace(begin, Segment{end, std::move(value)});
    }

    void clear() { segments_.clear(); }
    [[nodiscard]] std::size_t size() const { return segments_.size(); }

private:
    struct Segment {
        Address end;
        T value;
    };

    // Returns the value of the segment whose bounds are exactly `begin` and `end`; null if there is none. This is the
    // fast path, because most accesses repeat the range of an earlier one.
    T* exactly(Address begin, Address end) {
        const auto found = segments_.find(begin);
        return found != segments_.end() && found->second.end == end ? &found->second.value : nullptr;
    }

    void split(Address at) {
        auto found = segments_.lower_bound(at);
        if (found == segments_.begin()) return;
        --found;
        if (found->first >= at || found->second.end <= at) return;
        Segment upper{found->second.end, found->second.value};
        found->second.end = at;
        segments_.emplace(at, std::move(upper));
    }

    std::map<Address, Segment, std::less<>, Allocator<std::pair<const Address, Segment>>> segments_;
};

}  // namespace npushmem::npu::check
