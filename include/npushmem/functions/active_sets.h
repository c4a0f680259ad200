/* SPDX-License-Identifier: BSD-3-Clause */
/* Deprecated: collectives over active sets. Expanded several times; see npushmem/functions.h for the rows.
 *
 * An active set has the PEs start, start + 2^log_stride, ... (size of them). pSync: symmetric, of at least
 * NPUSHMEM_SYNC_SIZE elements that are NPUSHMEM_SYNC_VALUE before the first call and again after each; pWrk: symmetric,
 * not used. broadcast32/64 do not change the root's dest; root counts within the set.
 *
 * Errors: reported, and nothing is done: a set with PEs that do not exist, a caller outside the set, and the errors of
 * the collectives over teams.
 *
 * Ordering: as for the collectives over teams; barrier completes the caller's earlier operations, sync does not. */
NPUSHMEM_PLAIN(barrier, void, (start, log_stride, size, pSync), int start, int log_stride, int size, long* pSync)
NPUSHMEM_PLAIN(sync, void, (start, log_stride, size, pSync), int start, int log_stride, int size, long* pSync)
#define NPUSHMEM_X(BITS, BYTES)                                                                                        \
    NPUSHMEM_PLAIN(broadcast##BITS, void, (dest, source, count, root, start, log_stride, size, pSync), void* dest,     \
                   const void* source, size_t count, int root, int start, int log_stride, int size, long* pSync)       \
    NPUSHMEM_PLAIN(collect##BITS, void, (dest, source, count, start, log_stride, size, pSync), void* dest,             \
                   const void* source, size_t count, int start, int log_stride, int size, long* pSync)                 \
    NPUSHMEM_PLAIN(fcollect##BITS, void, (dest, source, count, start, log_stride, size, pSync), void* dest,            \
                   const void* source, size_t count, int start, int log_stride, int size, long* pSync)                 \
    NPUSHMEM_PLAIN(alltoall##BITS, void, (dest, source, count, start, log_stride, size, pSync), void* dest,            \
                   const void* source, size_t count, int start, int log_stride, int size, long* pSync)                 \
    NPUSHMEM_PLAIN(alltoalls##BITS, void, (dest, source, dst, sst, count, start, log_stride, size, pSync), void* dest, \
                   const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, int start, int log_stride,          \
                   int size, long* pSync)
NPUSHMEM_FOR_EACH_COLLECTIVE_SIZE(NPUSHMEM_X)
#undef NPUSHMEM_X

#define NPUSHMEM_X_ONE(NAME, TYPE, OP)                                                                              \
    NPUSHMEM_OLD_REDUCTION(NAME, TYPE, OP, (dest, source, count, start, log_stride, size, pWrk, pSync), TYPE* dest, \
                           const TYPE* source, int count, int start, int log_stride, int size, TYPE* pWrk,          \
                           long* pSync)
#define NPUSHMEM_X(NAME, TYPE)      \
    NPUSHMEM_X_ONE(NAME, TYPE, and) \
    NPUSHMEM_X_ONE(NAME, TYPE, or)  \
    NPUSHMEM_X_ONE(NAME, TYPE, xor)
NPUSHMEM_FOR_EACH_OLD_BITWISE_REDUCTION_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X
#define NPUSHMEM_X(NAME, TYPE)      \
    NPUSHMEM_X_ONE(NAME, TYPE, max) \
    NPUSHMEM_X_ONE(NAME, TYPE, min)
NPUSHMEM_FOR_EACH_OLD_ORDERED_REDUCTION_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X
#define NPUSHMEM_X(NAME, TYPE)      \
    NPUSHMEM_X_ONE(NAME, TYPE, sum) \
    NPUSHMEM_X_ONE(NAME, TYPE, prod)
NPUSHMEM_FOR_EACH_OLD_ARITHMETIC_REDUCTION_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X
#undef NPUSHMEM_X_ONE
