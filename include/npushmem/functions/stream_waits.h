/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits in the order of a stream, with the prefix npushmemx_. Expanded several times; see npushmem/functions.h for the
 * rows and npushmem/on_stream.h for streams.
 *
 * As npushmem_TYPE_wait_until, wait_until_all and wait_until_all_vector on this PE's own copies, but queued: the call
 * returns at once, and what is queued behind waits. Operations of other streams run meanwhile.
 *
 * Errors: the return value is 0 if the wait was queued, or a code of npushmem/plugin/abi.h with a report: not
 * initialised, a closed stream, an object that is not symmetric or not aligned, an unknown comparison, a NULL array of
 * values. A lost PE or an expired deadline is the stream's failure, as npushmem/on_stream.h describes.
 *
 * Ordering: data that was put before the observed value, with a fence or signal between, is visible to what is queued
 * behind.
 *
 * Parameters: stream: a stream of this PE's device, NULL for the default one. */

/* `status` and `values` are read while the wait runs. */
#define NPUSHMEM_X(NAME, TYPE)                                                                                     \
    NPUSHMEM_TYPED(NAME, TYPE, wait_until_on_stream, int, (object, comparison, value, stream), TYPE* object,       \
                   int comparison, TYPE value, npushmemx_stream_t stream)                                          \
    NPUSHMEM_TYPED(NAME, TYPE, wait_until_all_on_stream, int, (objects, count, status, comparison, value, stream), \
                   TYPE* objects, size_t count, const int* status, int comparison, TYPE value,                     \
                   npushmemx_stream_t stream)                                                                      \
    NPUSHMEM_TYPED(NAME, TYPE, wait_until_all_vector_on_stream, int,                                               \
                   (objects, count, status, comparison, values, stream), TYPE* objects, size_t count,              \
                   const int* status, int comparison, TYPE* values, npushmemx_stream_t stream)
NPUSHMEM_ATOMIC_TYPES(NPUSHMEM_X)
NPUSHMEM_FOR_EACH_OLD_WAIT_UNTIL_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X
