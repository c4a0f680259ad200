/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives over teams, and locks. Expanded several times; see npushmem/functions.h for the rows.
 *
 * Every PE of the team calls the same function with the same symmetric arrays, counts (but for collect), strides and
 * roots. Before any PE calls, `dest` must be ready on all; on return, the own `dest` is complete and the own `source`
 * may be reused. The arrays must not overlap, except that reductions and scans accept one array as both. 0, or nonzero
 * with a report. (1.6, section "Collective Routines".)
 *
 * Errors: nonzero, the code of npushmem/plugin/abi.h, with a report: an invalid or destroyed team, an address that is
 * not symmetric, a range that leaves symmetric memory, a stride below 1, a root outside the team, a lost PE, an expired
 * deadline. Arguments that differ among the members are detected with NPUSHMEM_CHECK=1 only.
 *
 * Ordering: one thread at a time in each team, in the same order on all members. Earlier puts are not completed. Locks:
 * clear_lock completes operations under the lock before another PE gets it.
 *
 * broadcast: copies root's source to dest on all PEs, including the root. collect: concatenates the sources in the
 * order of the PEs; counts may differ. fcollect: the same with equal counts. alltoall: copies block j of source to
 * block `me` of dest on PE j; alltoalls: the same with elements dst and sst apart. */
#define NPUSHMEM_X(NAME, TYPE)                                                                                      \
    NPUSHMEM_TYPED(NAME, TYPE, broadcast, int, (team, dest, source, count, root), npushmem_team_t team, TYPE* dest, \
                   const TYPE* source, size_t count, int root)                                                      \
    NPUSHMEM_TYPED(NAME, TYPE, collect, int, (team, dest, source, count), npushmem_team_t team, TYPE* dest,         \
                   const TYPE* source, size_t count)                                                                \
    NPUSHMEM_TYPED(NAME, TYPE, fcollect, int, (team, dest, source, count), npushmem_team_t team, TYPE* dest,        \
                   const TYPE* source, size_t count)                                                                \
    NPUSHMEM_TYPED(NAME, TYPE, alltoall, int, (team, dest, source, count), npushmem_team_t team, TYPE* dest,        \
                   const TYPE* source, size_t count)                                                                \
    NPUSHMEM_TYPED(NAME, TYPE, alltoalls, int, (team, dest, source, dst, sst, count), npushmem_team_t team,         \
                   TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t count)
NPUSHMEM_RMA_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X
/* The same in bytes. */
NPUSHMEM_PLAIN(broadcastmem, int, (team, dest, source, bytes, root), npushmem_team_t team, void* dest,
               const void* source, size_t bytes, int root)
NPUSHMEM_PLAIN(collectmem, int, (team, dest, source, bytes), npushmem_team_t team, void* dest, const void* source,
               size_t bytes)
NPUSHMEM_PLAIN(fcollectmem, int, (team, dest, source, bytes), npushmem_team_t team, void* dest, const void* source,
               size_t bytes)
NPUSHMEM_PLAIN(alltoallmem, int, (team, dest, source, bytes), npushmem_team_t team, void* dest, const void* source,
               size_t bytes)
NPUSHMEM_PLAIN(alltoallsmem, int, (team, dest, source, dst, sst, bytes), npushmem_team_t team, void* dest,
               const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bytes)

/* Reductions: element i of every dest combines element i of all sources, so that all PEs get the same bits: in the
 * order of the PEs, or on several hosts those of each host first, by the size and the team (f16 and bf16: always the
 * former). A library of NPUSHMEM_COLL_LIBRARY may round sums and products of floats otherwise. max and min are NaN if
 * an operand is. Scans combine the sources up to this PE's (inscan), or before it (exscan; zero on PE 0). */
#define NPUSHMEM_X_ONE(NAME, TYPE, OP)                                                                 \
    NPUSHMEM_TYPED(NAME, TYPE, OP, int, (team, dest, source, count), npushmem_team_t team, TYPE* dest, \
                   const TYPE* source, size_t count)
#define NPUSHMEM_X(NAME, TYPE)             \
    NPUSHMEM_X_ONE(NAME, TYPE, and_reduce) \
    NPUSHMEM_X_ONE(NAME, TYPE, or_reduce)  \
    NPUSHMEM_X_ONE(NAME, TYPE, xor_reduce)
NPUSHMEM_BITWISE_REDUCTION_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X
#define NPUSHMEM_X(NAME, TYPE)             \
    NPUSHMEM_X_ONE(NAME, TYPE, max_reduce) \
    NPUSHMEM_X_ONE(NAME, TYPE, min_reduce)
NPUSHMEM_RMA_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X
#define NPUSHMEM_X(NAME, TYPE)              \
    NPUSHMEM_X_ONE(NAME, TYPE, sum_reduce)  \
    NPUSHMEM_X_ONE(NAME, TYPE, prod_reduce) \
    NPUSHMEM_X_ONE(NAME, TYPE, sum_inscan)  \
    NPUSHMEM_X_ONE(NAME, TYPE, sum_exscan)
NPUSHMEM_ARITHMETIC_REDUCTION_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X
#undef NPUSHMEM_X_ONE

/* Locks: symmetric words, zero before first use; the word of any PE names the same lock. Granted in the order of
 * requests. set: quiet is not implied on entry; clear: quiet first. test: 0 if the lock was free and now belongs to
 * this PE, 1 otherwise. (1.6, "Distributed Locking Routines".) */
NPUSHMEM_PLAIN(set_lock, void, (lock), long* lock)
NPUSHMEM_PLAIN(clear_lock, void, (lock), long* lock)
NPUSHMEM_PLAIN(test_lock, int, (lock), long* lock)
