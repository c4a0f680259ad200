#include "core/memory/allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace npushmem {
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

// Adds a range to the free ones, joined with those that touch it.
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
            fmt::format("the allocation at {:#x} cannot grow in place to {} bytes: what follows it is in use "
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
