/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives over teams in the order of a stream, with the prefix npushmemx_. Expanded several times; see
 * npushmem/functions.h for the rows and npushmem/on_stream.h for streams.
 *
 * As the functions without _on_stream, but queued: the call returns at once. All members of the team queue the same
 * operation; it has a thread of its own until it ends, and no other thread may use the team at that time.
 *
 * Errors: the return value is 0 if the operation was queued, or a code of npushmem/plugin/abi.h with a report (not
 * initialised, a closed stream). A later failure is the stream's, as npushmem/on_stream.h describes.
 *
 * Ordering: an operation begins when everything queued in the stream before it has ended; operations queued behind wait
 * for it. Collectives do not complete earlier puts of the default context that were not queued in this stream.
 *
 * Parameters: stream: a stream of this PE's device, NULL for the default one. */
#define NPUSHMEM_X(NAME, TYPE)                                                                                     \
    NPUSHMEM_TYPED(NAME, TYPE, broadcast_on_stream, int, (team, dest, source, count, root, stream),                \
                   npushmem_team_t team, TYPE* dest, const TYPE* source, size_t count, int root,                   \
                   npushmemx_stream_t stream)                                                                      \
    NPUSHMEM_TYPED(NAME, TYPE, collect_on_stream, int, (team, dest, source, count, stream), npushmem_team_t team,  \
                   TYPE* dest, const TYPE* source, size_t count, npushmemx_stream_t stream)                        \
    NPUSHMEM_TYPED(NAME, TYPE, fcollect_on_stream, int, (team, dest, source, count, stream), npushmem_team_t team, \
                   TYPE* dest, const TYPE* source, size_t count, npushmemx_stream_t stream)                        \
    NPUSHMEM_TYPED(NAME, TYPE, alltoall_on_stream, int, (team, dest, source, count, stream), npushmem_team_t team, \
                   TYPE* dest, const TYPE* source, size_t count, npushmemx_stream_t stream)
NPUSHMEM_RMA_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X

/* Reductions to all members, and reduce-scatter; `source` and `dest` as for the functions without _on_stream. */
#define NPUSHMEM_X_ONE(NAME, TYPE, OP)                                                                                \
    NPUSHMEM_TYPED(NAME, TYPE, OP##_reduce_on_stream, int, (team, dest, source, count, stream), npushmem_team_t team, \
                   TYPE* dest, const TYPE* source, size_t count, npushmemx_stream_t stream)                           \
    NPUSHMEM_TYPED(NAME, TYPE, OP##_reducescatter_on_stream, int, (team, dest, source, count, stream),                \
                   npushmem_team_t team, TYPE* dest, const TYPE* source, size_t count, npushmemx_stream_t stream)
#define NPUSHMEM_X(NAME, TYPE)      \
    NPUSHMEM_X_ONE(NAME, TYPE, and) \
    NPUSHMEM_X_ONE(NAME, TYPE, or)  \
    NPUSHMEM_X_ONE(NAME, TYPE, xor)
NPUSHMEM_BITWISE_REDUCTION_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X
#define NPUSHMEM_X(NAME, TYPE)      \
    NPUSHMEM_X_ONE(NAME, TYPE, max) \
    NPUSHMEM_X_ONE(NAME, TYPE, min)
NPUSHMEM_RMA_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X
#define NPUSHMEM_X(NAME, TYPE)      \
    NPUSHMEM_X_ONE(NAME, TYPE, sum) \
    NPUSHMEM_X_ONE(NAME, TYPE, prod)
NPUSHMEM_ARITHMETIC_REDUCTION_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X
#undef NPUSHMEM_X_ONE
