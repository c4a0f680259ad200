#include "core/memory/allocation_tracker.hpp"

#include <fmt/core.h>

#include <iterator>

namespace npushmem {

void AllocationTracker::add(std::uint64_t offset, std::uint64_t bytes) {
    const std::lock_guard guard(lock_);
    auto old = freed_.lower_bound(offset);
    if (old != freed_.begin() && std::prev(old)->first + std::prev(old)->second > offset) --old;
    while (old != freed_.end() && old->first < offset + bytes) old = freed_.erase(old);
    live_[offset] = bytes;
}

void AllocationTracker::remove(std::uint64_t offset) {
    const std::lock_guard guard(lock_);
    const auto found = live_.find(offset);
    if (found == live_.end()) return;
    freed_[offset] = found->second;
    live_.erase(found);
}

AllocationTracker::Ranges::const_iterator AllocationTracker::holding(const Ranges& ranges, std::uint64_t offset) {
    const auto after = ranges.upper_bound(offset);
    if (after == ranges.begin()) return ranges.end();
    const auto last = std::prev(after);
    return offset - last->first < last->second ? last : ranges.end();
}

Status AllocationTracker::check(std::uint64_t offset, std::uint64_t bytes) const {
    const std::lock_guard guard(lock_);
    if (const auto object = holding(live_, offset); object != live_.end()) {
        const std::uint64_t left = object->second - (offset - object->first);
        if (bytes <= left) return {};
        return {Code::range, fmt::format("reach {} bytes beyond the object of {} bytes that they begin in",
                                         bytes - left, object->second)};
    }
    if (const auto object = holding(freed_, offset); object != freed_.end())
        return {Code::argument, fmt::format("lie in an object of {} bytes that has been freed", object->second)};
    return {Code::argument, "lie in no object from npushmem_malloc"};
}

}  // namespace npushmem
