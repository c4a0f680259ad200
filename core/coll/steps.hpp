// SPDX-License-Identifier: BSD-3-Clause
// Steps that the collective algorithms share.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/coll/group.hpp"
#include "core/coll/reduce_kernel.hpp"
#include "core/map/fast_map.hpp"

namespace npushmem::coll {

// Two blocks fit into a core's first-level cache.
inline constexpr std::uint64_t block_bytes = 8192;

inline void copy(void* to, const void* from, std::uint64_t bytes) {
    if (bytes < min_string_copy)
        std::memcpy(to, from, bytes);
    else
        copy_large(to, from, bytes);
}

inline Status write(Group& group, int member, std::uint64_t offset, const void* source, std::uint64_t bytes) {
    if (bytes == 0) return {};
    std::byte* const there = group.mapped_address(member, offset);
    if (there == nullptr) return group.put(member, offset, source, bytes);
    if (there != source) copy(there, source, bytes);
    return {};
}

inline Status read(Group& group, int member, std::uint64_t offset, void* dest, std::uint64_t bytes) {
    if (bytes == 0) return {};
    const std::byte* const there = group.mapped_address(member, offset);
    if (there == nullptr) return group.get(member, offset, dest, bytes);
    if (there != dest) copy(dest, there, bytes);
    return {};
}

inline std::byte* local_address(const Group& group, std::uint64_t offset) {
    return group.mapped_address(group.index(), offset);
}

// Synchronises, also after a failure of this member, so that the barriers of later calls stay paired. Returns the first
// failure.
inline Status sync_after(Group& group, Status done) {
    return sync_after(std::move(done), [&group] { return group.sync(); });
}

// The same after the completion of this member's puts.
inline Status complete_and_sync(Group& group, Status done) {
    if (done.ok() && !group.all_mapped()) done = group.complete();
    return sync_after(group, std::move(done));
}

// Calls `step` with each number from 0 to `count` - 1 until one fails, `own` last: where all members do the same, no
// two of them handle the same one at a time.
template <class Step>
Status for_each_from(int own, int count, Step&& step) {
    Status done;
    for (int i = 1; i <= count && done.ok(); ++i) {
        const int next = own + i;
        done = step(next < count ? next : next - count);
    }
    return done;
}

// Calls `step` for every member in turn, this one last, until one fails.
template <class Step>
Status for_all(const Group& group, Step&& step) {
    return for_each_from(group.index(), group.size(), step);
}

// Chunk `index` of `count` elements divided into `parts`.
struct Chunk {
    std::uint64_t first;
    std::uint64_t count;
};
inline Chunk chunk_of(std::uint64_t count, int parts, int index) {
    const auto n = static_cast<std::uint64_t>(parts);
    const auto i = static_cast<std::uint64_t>(index);
    const std::uint64_t each = count / n;
    const std::uint64_t more = count % n;
    return {i * each + std::min(i, more), each + (i < more ? 1 : 0)};
}

// Bytes of a member.
struct Place {
    int member;
    std::uint64_t offset;
};

// Where the members' contributions to a call are published. Members that map each other pack them into the workspaces
// of the first members: a member then reads a few pages, not one of every member.
struct Contributions {
    std::uint64_t at;            // in each workspace
    std::uint64_t bytes;         // from one contribution to the next
    std::uint64_t of_workspace;  // contributions that one workspace holds

    [[nodiscard]] Place of(int member) const {
        const auto number = static_cast<std::uint64_t>(member);
        return {static_cast<int>(number / of_workspace), at + number % of_workspace * bytes};
    }
};

// Returns the half of every workspace that this call may write.
inline std::uint64_t next_half(Group& group) {
    return group.workspace() + group.next_workspace_half() * Workspace::contribution_bytes;
}

// Publishes this member's array of `bytes` in the half at `at`, and synchronises. `largest`: bytes of the longest
// array, equal on all members.
inline Result<Contributions> publish(Group& group, std::uint64_t at, const void* source, std::uint64_t bytes,
                                     std::uint64_t largest) {
    const std::uint64_t fitting = Workspace::contribution_bytes / std::max<std::uint64_t>(largest, 1);
    const Contributions all{at, largest, group.all_mapped() ? fitting : 1};
    const Place own = all.of(group.index());
    if (bytes > 0) std::memcpy(group.mapped_address(own.member, own.offset), source, bytes);
    Status synced = group.sync();
    return synced.ok() ? Result<Contributions>(all) : Result<Contributions>(synced);
}

// Publishes arrays of equal length.
inline Result<Contributions> publish(Group& group, const void* source, std::uint64_t bytes) {
    return publish(group, next_half(group), source, bytes, bytes);
}

inline Status read(Group& group, const Place& from, void* dest, std::uint64_t bytes) {
    return read(group, from.member, from.offset, dest, bytes);
}

// Combines the arrays of `count` elements at the places that place_of(0) to place_of(arrays - 1) return, in this order,
// into `result`. Their accumulators fit into a block.
template <class PlaceOf>
Status combine(Group& group, int arrays, PlaceOf&& place_of, std::size_t count, const Reduction& how,
               std::byte* result) {
    alignas(64) std::array<std::byte, block_bytes> fetched;
    alignas(64) std::array<std::byte, block_bytes> wide;
    const std::uint64_t bytes = count * how.size;
    std::byte* const accumulators = how.widens() ? wide.data() : result;
    std::byte* const first = how.widens() ? fetched.data() : result;
    Status done = read(group, place_of(0), first, bytes);
    if (done.ok() && how.widens()) how.begin(accumulators, first, count);
    for (int i = 1; i < arrays && done.ok(); ++i) {
        const Place place = place_of(i);
        const std::byte* with = group.mapped_address(place.member, place.offset);
        if (with == nullptr) {
            done = group.get(place.member, place.offset, fetched.data(), bytes);
            with = fetched.data();
        }
        if (done.ok()) how.kernel(accumulators, with, count);
    }
    if (done.ok()) how.finish(result, accumulators, count);
    return done;
}

// Returns the group's SmallExchange if it carries this many bytes to every member, `each`: others to each; otherwise
// null.
inline SmallExchange* lines_for(Group& group, std::uint64_t bytes, bool each) {
    SmallExchange* const lines = group.small_exchange();
    return lines != nullptr && bytes <= lines->max_payload(each) ? lines : nullptr;
}

// The same for a number of elements of a reduction.
inline SmallExchange* lines_for(Group& group, std::uint64_t count, const Reduction& how, bool each) {
    return count <= SmallExchange::largest_payload ? lines_for(group, count * how.size, each) : nullptr;
}

// Combines the elements of the members before `end`, in their order; zero if there are none. `each`: they are
// the receiver's block at the member's source.
inline Status combine_by_lines(Group& group, SmallExchange& lines, std::uint64_t dest, std::uint64_t source,
                               std::uint64_t count, bool each, const Reduction& how, int end) {
    if (Status done = lines.run(local_address(group, source), count * how.size, each); !done.ok()) return done;
    alignas(64) std::array<std::byte, 2 * SmallExchange::largest_payload> result;
    if (end > 0)
        how.begin(result.data(), lines.of(0), count);
    else
        std::memset(result.data(), 0, count * how.accumulator_size);
    for (int member = 1; member < end; ++member) how.kernel(result.data(), lines.of(member), count);
    how.finish(local_address(group, dest), result.data(), count);
    return {};
}

}  // namespace npushmem::coll
