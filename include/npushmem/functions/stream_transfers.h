/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get in the order of a stream, with the prefix npushmemx_. Expanded several times; see
 * npushmem/functions.h for the rows and npushmem/on_stream.h for streams.
 *
 * As the functions without _on_stream, but queued: the call returns at once. A put is complete at its target, and a get
 * has its data, when the next operation of the stream begins; so the forms ending in nbi_on_stream are the same as the
 * others. The arrays must stay valid until then; p copies its value at once. g returns the value: it waits until
 * everything queued in the stream before it, and the get itself, have ended.
 *
 * Errors: the return value is 0 if the operation was queued, or a code of npushmem/plugin/abi.h with a report (not
 * initialised, a closed stream). A later failure is the stream's, as npushmem/on_stream.h describes. After a failure g
 * returns 0, with a report; a failure of the stream stays for npushmemx_stream_synchronize.
 *
 * Ordering: an operation begins when everything queued in the stream before it has ended; operations queued behind wait
 * for it.
 *
 * Parameters: stream: a stream of this PE's device, NULL for the default one. */
#define NPUSHMEM_X(NAME, TYPE)                                                                                         \
    NPUSHMEM_TYPED(NAME, TYPE, p_on_stream, int, (dest, value, pe, stream), TYPE* dest, TYPE value, int pe,            \
                   npushmemx_stream_t stream)                                                                          \
    NPUSHMEM_TYPED(NAME, TYPE, g_on_stream, TYPE, (source, pe, stream), const TYPE* source, int pe,                    \
                   npushmemx_stream_t stream)                                                                          \
    NPUSHMEM_TYPED(NAME, TYPE, put_on_stream, int, (dest, source, count, pe, stream), TYPE* dest, const TYPE* source,  \
                   size_t count, int pe, npushmemx_stream_t stream)                                                    \
    NPUSHMEM_TYPED(NAME, TYPE, get_on_stream, int, (dest, source, count, pe, stream), TYPE* dest, const TYPE* source,  \
                   size_t count, int pe, npushmemx_stream_t stream)                                                    \
    NPUSHMEM_TYPED(NAME, TYPE, put_nbi_on_stream, int, (dest, source, count, pe, stream), TYPE* dest,                  \
                   const TYPE* source, size_t count, int pe, npushmemx_stream_t stream)                                \
    NPUSHMEM_TYPED(NAME, TYPE, get_nbi_on_stream, int, (dest, source, count, pe, stream), TYPE* dest,                  \
                   const TYPE* source, size_t count, int pe, npushmemx_stream_t stream)                                \
    NPUSHMEM_TYPED(NAME, TYPE, iput_on_stream, int, (dest, source, dst, sst, count, pe, stream), TYPE* dest,           \
                   const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe, npushmemx_stream_t stream)  \
    NPUSHMEM_TYPED(NAME, TYPE, iget_on_stream, int, (dest, source, dst, sst, count, pe, stream), TYPE* dest,           \
                   const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe, npushmemx_stream_t stream)  \
    NPUSHMEM_TYPED(NAME, TYPE, put_signal_on_stream, int, (dest, source, count, sig_addr, signal, sig_op, pe, stream), \
                   TYPE* dest, const TYPE* source, size_t count, uint64_t* sig_addr, uint64_t signal, int sig_op,      \
                   int pe, npushmemx_stream_t stream)                                                                  \
    NPUSHMEM_TYPED(NAME, TYPE, put_signal_nbi_on_stream, int,                                                          \
                   (dest, source, count, sig_addr, signal, sig_op, pe, stream), TYPE* dest, const TYPE* source,        \
                   size_t count, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe, npushmemx_stream_t stream)
NPUSHMEM_RMA_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X

#define NPUSHMEM_X(BITS, BYTES)                                                                                       \
    NPUSHMEM_SIZED(BITS, BYTES, put, _on_stream, int, (dest, source, count, pe, stream), void* dest,                  \
                   const void* source, size_t count, int pe, npushmemx_stream_t stream)                               \
    NPUSHMEM_SIZED(BITS, BYTES, get, _on_stream, int, (dest, source, count, pe, stream), void* dest,                  \
                   const void* source, size_t count, int pe, npushmemx_stream_t stream)                               \
    NPUSHMEM_SIZED(BITS, BYTES, put, _nbi_on_stream, int, (dest, source, count, pe, stream), void* dest,              \
                   const void* source, size_t count, int pe, npushmemx_stream_t stream)                               \
    NPUSHMEM_SIZED(BITS, BYTES, get, _nbi_on_stream, int, (dest, source, count, pe, stream), void* dest,              \
                   const void* source, size_t count, int pe, npushmemx_stream_t stream)                               \
    NPUSHMEM_SIZED(BITS, BYTES, iput, _on_stream, int, (dest, source, dst, sst, count, pe, stream), void* dest,       \
                   const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe, npushmemx_stream_t stream) \
    NPUSHMEM_SIZED(BITS, BYTES, iget, _on_stream, int, (dest, source, dst, sst, count, pe, stream), void* dest,       \
                   const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe, npushmemx_stream_t stream) \
    NPUSHMEM_SIZED(BITS, BYTES, put, _signal_on_stream, int,                                                          \
                   (dest, source, count, sig_addr, signal, sig_op, pe, stream), void* dest, const void* source,       \
                   size_t count, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe, npushmemx_stream_t stream)  \
    NPUSHMEM_SIZED(BITS, BYTES, put, _signal_nbi_on_stream, int,                                                      \
                   (dest, source, count, sig_addr, signal, sig_op, pe, stream), void* dest, const void* source,       \
                   size_t count, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe, npushmemx_stream_t stream)
NPUSHMEM_FOR_EACH_SIZE(NPUSHMEM_X)
#undef NPUSHMEM_X
