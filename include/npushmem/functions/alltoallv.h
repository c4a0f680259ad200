/* SPDX-License-Identifier: BSD-3-Clause */
/* All-to-all with a number of elements for each pair of PEs, with the prefix npushmemx_. Expanded several times; see
 * npushmem/functions.h for the rows.
 *
 * Every PE of the team calls the same function. To member j it sends source_counts[j] elements, which begin
 * source_offsets[j] elements after `source`; from member j it receives dest_counts[j] elements, which begin
 * dest_offsets[j] elements after `dest`. dest_counts[j] equals source_counts[me] of member j. The four arrays have one
 * element for each member of the team and may be any memory; they may differ among the members. `dest` and `source` are
 * symmetric memory; a PE that receives or sends nothing may pass NULL. Before any PE calls, `dest` must be ready on
 * all; on return the own `dest` is complete and the own `source` may be reused. The blocks must not overlap.
 *
 * Errors: nonzero, the code of npushmem/plugin/abi.h, with a report: an invalid or destroyed team, a null pointer, an
 * address that is not symmetric, a range that leaves symmetric memory, a lost PE, an expired deadline. If the counts of
 * two members do not agree, both get NPUSHMEM_E_MISMATCH, nothing is sent between them in that direction, and all other
 * blocks are sent.
 *
 * Ordering: one thread at a time in each team, in the same order on all members. Earlier puts are not completed.
 *
 * Parameters: dest_counts, dest_offsets: number of elements (bytes) that come from each member, and their place behind
 * dest; source_counts, source_offsets: the same for those that go to each member, and their place behind source. */
#define NPUSHMEM_X(NAME, TYPE)                                                                              \
    NPUSHMEM_TYPED(NAME, TYPE, alltoallv, int,                                                              \
                   (team, dest, dest_counts, dest_offsets, source, source_counts, source_offsets),          \
                   npushmem_team_t team, TYPE* dest, const size_t* dest_counts, const size_t* dest_offsets, \
                   const TYPE* source, const size_t* source_counts, const size_t* source_offsets)
NPUSHMEM_RMA_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X
/* The same in bytes. */
NPUSHMEM_PLAIN(alltoallvmem, int, (team, dest, dest_counts, dest_offsets, source, source_counts, source_offsets),
               npushmem_team_t team, void* dest, const size_t* dest_counts, const size_t* dest_offsets,
               const void* source, const size_t* source_counts, const size_t* source_offsets)
