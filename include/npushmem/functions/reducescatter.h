/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduce-scatter over teams, with the prefix npushmemx_. Expanded several times; see npushmem/functions.h for the rows.
 *
 * Every PE of the team calls the same function with the same symmetric arrays and counts. `source` has `count` elements
 * for each PE of the team. Element i of this PE's `dest` combines element i of this PE's block of all sources, in the
 * order of the PEs; `dest` has `count` elements. On return the own `dest` is complete and the own `source` may be
 * reused. The arrays must not overlap, except that one array may be both. half and bfloat16 are combined in float and
 * rounded once, at the end.
 *
 * Errors: nonzero, the code of npushmem/plugin/abi.h, with a report: as for the reductions of
 * npushmem/functions/collectives.h. One array as both fails on all PEs if one of them has no memory for its block.
 *
 * Ordering: one thread at a time in each team, in the same order on all members. Earlier puts are not completed. */

/* Combines the members' blocks by the operation in the name; each member gets its own block of the result. */
#define NPUSHMEM_X_ONE(NAME, TYPE, OP)                                                                                 \
    NPUSHMEM_TYPED(NAME, TYPE, OP##_reducescatter, int, (team, dest, source, count), npushmem_team_t team, TYPE* dest, \
                   const TYPE* source, size_t count)
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
