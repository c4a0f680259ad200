// SPDX-License-Identifier: BSD-3-Clause
// The common part of collectives over teams and over active sets.
#pragma once

#include <complex>
#include <type_traits>

#include "core/api/access.hpp"
#include "core/api/teams.hpp"
#include "core/coll/collectives.hpp"
#include "npushmem/types.h"

namespace npushmem::api {

// The representation of a type, for the kernels.
template <class T>
constexpr coll::ReduceElement element_of() {
    using coll::ReduceElement;
    if constexpr (std::is_same_v<T, float>)
        return ReduceElement::f32;
    else if constexpr (std::is_same_v<T, double>)
        return ReduceElement::f64;
    else if constexpr (std::is_same_v<T, long double>)
        return ReduceElement::f80;
    else if constexpr (std::is_same_v<T, npushmemx_half_t>)
        return ReduceElement::f16;
    else if constexpr (std::is_same_v<T, npushmemx_bfloat16_t>)
        return ReduceElement::bf16;
    else if constexpr (std::is_same_v<T, npushmem_complexf>)
        return ReduceElement::c32;
    else if constexpr (std::is_same_v<T, npushmem_complexd>)
        return ReduceElement::c64;
    else if constexpr (sizeof(T) == 1)
        return std::is_signed_v<T> ? ReduceElement::i8 : ReduceElement::u8;
    else if constexpr (sizeof(T) == 2)
        return std::is_signed_v<T> ? ReduceElement::i16 : ReduceElement::u16;
    else if constexpr (sizeof(T) == 4)
        return std::is_signed_v<T> ? ReduceElement::i32 : ReduceElement::u32;
    else
        return std::is_signed_v<T> ? ReduceElement::i64 : ReduceElement::u64;
}

// For each member of a team: a number of elements, and where they begin, in elements behind an array's beginning.
struct Counts {
    const std::size_t* counts;
    const std::size_t* offsets;
};

// The untyped operations; `size` is an element's size in bytes.
int broadcast_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::size_t count,
                  std::size_t size, int root, bool to_root);
int collect_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::size_t count,
                std::size_t size);
int fcollect_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::size_t count,
                 std::size_t size);
int alltoalls_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::ptrdiff_t dst,
                  std::ptrdiff_t sst, std::size_t count, std::size_t size);
int alltoallv_any(const char* function, const Result<Team*>& team, void* dest, const Counts& dest_counts,
                  const void* source, const Counts& source_counts, std::size_t size);
int reduce_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::size_t count,
               coll::ReduceOperation operation, coll::ReduceElement element);
// `source` has `count` elements for each member of the team.
int reduce_scatter_any(const char* function, const Result<Team*>& team, void* dest, const void* source,
                       std::size_t count, coll::ReduceOperation operation, coll::ReduceElement element);
int scan_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::size_t count,
             bool inclusive, coll::ReduceElement element);

// Forgets the teams of a world's active sets, when it ends; the runtime destroys them.
void clear_active_sets(const World& world);

}  // namespace npushmem::api
