// SPDX-License-Identifier: BSD-3-Clause
// The collectives over teams, expanded from the tables of npushmem/types.h.
#include "core/api/collectives.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/api/access.hpp"
#include "core/base/out_of_memory.hpp"
#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::api {

namespace {

// An array of a collective call: its address here, and its bytes on this PE.
struct Array {
    const char* name;
    const void* memory;
    std::uint64_t bytes;
};

// Returns its offset if it is symmetric; that of an empty array is 0.
Result<std::uint64_t> offset_of(const Runtime& up, const Array& array) {
    if (array.bytes == 0) return 0;
    // The common case of the checks below. A broadcast of 8 bytes on 2 PEs takes 50 ns with it and 65 without.
    const FastMap& map = up.slices().fast_map();
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(array.memory) - map.heap;
    if (!up.settings().check && offset < map.heap_bytes && array.bytes <= map.heap_bytes - offset) [[likely]]
        return offset;
    Status checked = check_object_on_all_pes(up, array.name, array.memory, array.bytes);
    if (!checked.ok()) return checked;
    return up.slices().offset_of(array.memory);
}

Status check_strides(std::ptrdiff_t dst, std::ptrdiff_t sst) {
    if (dst >= 1 && sst >= 1) return {};
    return {Code::argument, fmt::format("strides must be at least 1; dst is {}, sst is {}", dst, sst)};
}

// Returns the bytes from the first to the end of the last of `count` elements that are `stride` apart.
std::uint64_t spread_bytes(std::uint64_t count, std::ptrdiff_t stride, std::size_t size) {
    return count == 0 ? 0 : byte_count(byte_count(count - 1, static_cast<std::size_t>(stride)), size) + size;
}

// Checks the arguments of a call on this PE, and with NPUSHMEM_CHECK that all members give the same; completes `call`.
Status check_call(const Runtime& up, Team& team, const char* function, const Array& dest, const Array& source,
                  bool in_place, Call& call) {
    const auto to = offset_of(up, dest);
    const auto from = offset_of(up, source);
    if (to.ok()) call.dest = to.value();
    if (from.ok()) call.source = from.value();
    Status done = to.ok() ? from.status() : to.status();
    if (!up.settings().check) [[likely]]
        return done;
    if (done.ok() && !(in_place && dest.memory == source.memory))
        done = check_no_overlap(up, dest.memory, dest.bytes, source.memory, source.bytes);
    return check_same_call(team, function, call, done);
}

// Runs body(group, offset of dest, offset of source) if both arrays are symmetric; reports a failure and returns its
// code. `call` has the arguments that must be equal on all members. `in_place` allows that the arrays are the same.
template <class Body>
int run_collective(const char* function, const Result<Team*>& team, const Array& dest, const Array& source, Call call,
                   const Body& body, bool in_place = false) try {
    Status done = team.status();
    if (done.ok()) {
        const CollectiveCall in_progress(team.value()->calls(), function);
        done = check_call(*runtime_unnoted(), *team.value(), function, dest, source, in_place, call);
        if (done.ok()) done = body(*team.value(), call.dest, call.source);
    }
    if (!done.ok()) [[unlikely]]
        fail(function, done);
    return static_cast<int>(done.code());
} catch (const std::bad_alloc&) {
    end_without_memory(function);
}

}  // namespace

int broadcast_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::size_t count,
                  std::size_t size, int root, bool to_root) {
    const std::uint64_t bytes = byte_count(count, size);
    return run_collective(
        function, team, {"dest", dest, bytes}, {"source", source, bytes}, {.count = count, .root = root},
        [&](coll::Group& group, std::uint64_t to, std::uint64_t from) -> Status {
            if (root < 0 || root >= group.size())
                return {Code::range, fmt::format("root {} is not in the team, which has {} PEs", root, group.size())};
            return coll::broadcast(group, to, from, bytes, root, to_root);
        });
}

int collect_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::size_t count,
                std::size_t size) {
    const std::uint64_t bytes = byte_count(count, size);
    // The size of dest is not known here: only its beginning is checked, and the operation checks the rest. dest may be
    // empty if no member contributes.
    const bool none = dest == nullptr && count == 0;
    return run_collective(
        function, team, {"dest", dest, none ? 0U : 1U}, {"source", source, bytes},
        {.count = count, .counts_differ = true}, [&](coll::Group& group, std::uint64_t to, std::uint64_t from) {
            return coll::collect(group, to, from, bytes, none ? 0 : runtime()->slices().bytes_to_end(to));
        });
}

int fcollect_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::size_t count,
                 std::size_t size) {
    const std::uint64_t bytes = byte_count(count, size);
    const auto members = static_cast<std::size_t>(team.ok() ? team.value()->size() : 1);
    return run_collective(function, team, {"dest", dest, byte_count(bytes, members)}, {"source", source, bytes},
                          {.count = count}, [&](coll::Group& group, std::uint64_t to, std::uint64_t from) {
                              return coll::fcollect(group, to, from, bytes);
                          });
}

int alltoalls_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::ptrdiff_t dst,
                  std::ptrdiff_t sst, std::size_t count, std::size_t size) {
    const auto members = static_cast<std::size_t>(team.ok() ? team.value()->size() : 1);
    const std::uint64_t elements = byte_count(count, members);
    const auto body = [&](coll::Group& group, std::uint64_t to, std::uint64_t from) {
        return coll::alltoalls(group, to, from,
                               {static_cast<std::uint64_t>(dst), static_cast<std::uint64_t>(sst), count, size});
    };
    if (Status checked = check_strides(dst, sst); !checked.ok()) {
        fail(function, checked);
        return static_cast<int>(checked.code());
    }
    return run_collective(function, team, {"dest", dest, spread_bytes(elements, dst, size)},
                          {"source", source, spread_bytes(elements, sst, size)},
                          {.count = count, .dst = dst, .sst = sst}, body);
}

namespace {

// Returns the bytes from an array's beginning to the end of its last block; on overflow more than any heap holds.
std::uint64_t extent_of(const Counts& counts, std::size_t members, std::size_t size) {
    std::uint64_t extent = 0;
    for (std::size_t i = 0; i < members; ++i) {
        std::uint64_t end = 0;
        if (counts.counts[i] == 0) continue;
        if (__builtin_add_overflow(counts.offsets[i], counts.counts[i], &end))
            end = std::numeric_limits<std::size_t>::max();
        extent = std::max(extent, byte_count(end, size));
    }
    return extent;
}

std::vector<coll::Block> blocks_of(const Counts& counts, std::size_t members, std::size_t size, std::uint64_t begin) {
    std::vector<coll::Block> blocks;
    for (std::size_t i = 0; i < members; ++i)
        blocks.push_back({counts.counts[i] > 0 ? begin + counts.offsets[i] * size : 0, counts.counts[i] * size});
    return blocks;
}

}  // namespace

int alltoallv_any(const char* function, const Result<Team*>& team, void* dest, const Counts& dest_counts,
                  const void* source, const Counts& source_counts, std::size_t size) {
    for (const auto& [name, array] : {std::pair{"dest_counts", dest_counts.counts},
                                      {"dest_offsets", dest_counts.offsets},
                                      {"source_counts", source_counts.counts},
                                      {"source_offsets", source_counts.offsets}})
        if (array == nullptr) {
            fail(function, {Code::argument, fmt::format("{} is NULL", name)});
            return static_cast<int>(Code::argument);
        }
    const auto members = static_cast<std::size_t>(team.ok() ? team.value()->size() : 0);
    return run_collective(function, team, {"dest", dest, extent_of(dest_counts, members, size)},
                          {"source", source, extent_of(source_counts, members, size)}, {.counts_differ = true},
                          [&](coll::Group& group, std::uint64_t to, std::uint64_t from) {
                              return coll::alltoallv(group, blocks_of(dest_counts, members, size, to),
                                                     blocks_of(source_counts, members, size, from));
                          });
}

int reduce_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::size_t count,
               coll::ReduceOperation operation, coll::ReduceElement element) {
    const std::uint64_t bytes = byte_count(count, coll::element_bytes(element));
    return run_collective(
        function, team, {"dest", dest, bytes}, {"source", source, bytes}, {.count = count},
        [&](coll::Group& group, std::uint64_t to, std::uint64_t from) {
            return coll::reduce(group, to, from, count, operation, element);
        },
        true);
}

int reduce_scatter_any(const char* function, const Result<Team*>& team, void* dest, const void* source,
                       std::size_t count, coll::ReduceOperation operation, coll::ReduceElement element) {
    const std::uint64_t bytes = byte_count(count, coll::element_bytes(element));
    const auto members = static_cast<std::size_t>(team.ok() ? team.value()->size() : 1);
    return run_collective(
        function, team, {"dest", dest, bytes}, {"source", source, byte_count(bytes, members)}, {.count = count},
        [&](coll::Group& group, std::uint64_t to, std::uint64_t from) {
            return coll::reduce_scatter(group, to, from, count, operation, element);
        },
        true);
}

int scan_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::size_t count,
             bool inclusive, coll::ReduceElement element) {
    const std::uint64_t bytes = byte_count(count, coll::element_bytes(element));
    return run_collective(
        function, team, {"dest", dest, bytes}, {"source", source, bytes}, {.count = count},
        [&](coll::Group& group, std::uint64_t to, std::uint64_t from) {
            return coll::scan(group, to, from, count, inclusive, element);
        },
        true);
}

// The functions of the tables, by their names there.
template <class T>
int broadcast(const char* function, npushmem_team_t team, void* dest, const void* source, std::size_t count, int root) {
    return broadcast_any(function, team_of(team), dest, source, count, sizeof(T), root, true);
}
template <class T>
int collect(const char* function, npushmem_team_t team, void* dest, const void* source, std::size_t count) {
    return collect_any(function, team_of(team), dest, source, count, sizeof(T));
}
template <class T>
int fcollect(const char* function, npushmem_team_t team, void* dest, const void* source, std::size_t count) {
    return fcollect_any(function, team_of(team), dest, source, count, sizeof(T));
}
template <class T>
int alltoall(const char* function, npushmem_team_t team, void* dest, const void* source, std::size_t count) {
    return alltoalls_any(function, team_of(team), dest, source, 1, 1, count, sizeof(T));
}
template <class T>
int alltoalls(const char* function, npushmem_team_t team, void* dest, const void* source, std::ptrdiff_t dst,
              std::ptrdiff_t sst, std::size_t count) {
    return alltoalls_any(function, team_of(team), dest, source, dst, sst, count, sizeof(T));
}

template <class T>
int alltoallv(const char* function, npushmem_team_t team, void* dest, const std::size_t* dest_counts,
              const std::size_t* dest_offsets, const void* source, const std::size_t* source_counts,
              const std::size_t* source_offsets) {
    return alltoallv_any(function, team_of(team), dest, {dest_counts, dest_offsets}, source,
                         {source_counts, source_offsets}, sizeof(T));
}

#define NPUSHMEM_REDUCE(NAME, OPERATION)                                                                  \
    template <class T>                                                                                    \
    int NAME(const char* function, npushmem_team_t team, T* dest, const T* source, std::size_t count) {   \
        return reduce_any(function, team_of(team), dest, source, count, coll::ReduceOperation::OPERATION, \
                          element_of<T>());                                                               \
    }
NPUSHMEM_REDUCE(and_reduce, and_)
NPUSHMEM_REDUCE(or_reduce, or_)
NPUSHMEM_REDUCE(xor_reduce, xor_)
NPUSHMEM_REDUCE(max_reduce, max)
NPUSHMEM_REDUCE(min_reduce, min)
NPUSHMEM_REDUCE(sum_reduce, sum)
NPUSHMEM_REDUCE(prod_reduce, prod)
#undef NPUSHMEM_REDUCE

#define NPUSHMEM_REDUCESCATTER(NAME, OPERATION)                                                                   \
    template <class T>                                                                                            \
    int NAME(const char* function, npushmem_team_t team, T* dest, const T* source, std::size_t count) {           \
        return reduce_scatter_any(function, team_of(team), dest, source, count, coll::ReduceOperation::OPERATION, \
                                  element_of<T>());                                                               \
    }
NPUSHMEM_REDUCESCATTER(and_reducescatter, and_)
NPUSHMEM_REDUCESCATTER(or_reducescatter, or_)
NPUSHMEM_REDUCESCATTER(xor_reducescatter, xor_)
NPUSHMEM_REDUCESCATTER(max_reducescatter, max)
NPUSHMEM_REDUCESCATTER(min_reducescatter, min)
NPUSHMEM_REDUCESCATTER(sum_reducescatter, sum)
NPUSHMEM_REDUCESCATTER(prod_reducescatter, prod)
#undef NPUSHMEM_REDUCESCATTER

template <class T>
int sum_inscan(const char* function, npushmem_team_t team, T* dest, const T* source, std::size_t count) {
    return scan_any(function, team_of(team), dest, source, count, true, element_of<T>());
}
template <class T>
int sum_exscan(const char* function, npushmem_team_t team, T* dest, const T* source, std::size_t count) {
    return scan_any(function, team_of(team), dest, source, count, false, element_of<T>());
}

}  // namespace npushmem::api

#define NPUSHMEM_ONLY "npushmem/functions/collectives.h"
#include "core/api/definitions.hpp"
#define NPUSHMEM_HALF_TYPES
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_ONLY "npushmem/functions/reducescatter.h"
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_ONLY "npushmem/functions/alltoallv.h"
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"
#undef NPUSHMEM_HALF_TYPES
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_ONLY "npushmem/functions/reducescatter.h"
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"

using namespace npushmem::api;

extern "C" {

int npushmem_broadcastmem(npushmem_team_t team, void* dest, const void* source, size_t bytes, int root) {
    return broadcast_any(__func__, team_of(team), dest, source, bytes, 1, root, true);
}
int npushmem_collectmem(npushmem_team_t team, void* dest, const void* source, size_t bytes) {
    return collect_any(__func__, team_of(team), dest, source, bytes, 1);
}
int npushmem_fcollectmem(npushmem_team_t team, void* dest, const void* source, size_t bytes) {
    return fcollect_any(__func__, team_of(team), dest, source, bytes, 1);
}
int npushmem_alltoallmem(npushmem_team_t team, void* dest, const void* source, size_t bytes) {
    return alltoalls_any(__func__, team_of(team), dest, source, 1, 1, bytes, 1);
}
int npushmemx_alltoallvmem(npushmem_team_t team, void* dest, const size_t* dest_counts, const size_t* dest_offsets,
                           const void* source, const size_t* source_counts, const size_t* source_offsets) {
    return alltoallv_any(__func__, team_of(team), dest, {dest_counts, dest_offsets}, source,
                         {source_counts, source_offsets}, 1);
}
int npushmem_alltoallsmem(npushmem_team_t team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                          size_t bytes) {
    return alltoalls_any(__func__, team_of(team), dest, source, dst, sst, bytes, 1);
}

}  // extern "C"
