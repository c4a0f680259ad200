/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get, put with signal. Expanded several times; see npushmem/functions.h for the rows.
 *
 * put: returns when `source` may be reused; complete at `pe` after quiet. get: returns with the data in `dest`. p and
 * g: one element by value. The forms ending in _nbi return at once: `source` (put) must not change and `dest` (get)
 * must not be read before quiet. iput, iget: element i goes from source[i * sst] to dest[i * dst]; strides count
 * elements and are at least 1. ibput, ibget: the same with blocks of `bsize` elements, whose beginnings are `dst` and
 * `sst` elements apart. put_signal: as put, then sets the signal word of `pe` to `signal` or adds `signal` to it, after
 * the data has arrived. (1.6, sections "Remote Memory Access Routines", "Non-blocking Remote Memory Access Routines"
 * and "Signaling Operations".)
 *
 * Errors: no data moves, and the failure is reported (npushmemx_last_error; gets of one element then return 0): a call
 * outside init and finalize, a PE that does not exist, an address that is not symmetric, a range that leaves symmetric
 * memory, a stride below 1, an unknown sig_op, NPUSHMEM_CTX_INVALID, a lost PE, an expired deadline.
 *
 * Ordering: none between two puts until a fence of the same context; quiet completes them at all PEs. A signal follows
 * the data of its own put_signal. */
#define NPUSHMEM_X(NAME, TYPE)                                                                                         \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, p, void, (dest, value, pe), TYPE* dest, TYPE value, int pe)                         \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, g, TYPE, (source, pe), const TYPE* source, int pe)                                  \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, put, void, (dest, source, count, pe), TYPE* dest, const TYPE* source, size_t count, \
                       int pe)                                                                                         \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, get, void, (dest, source, count, pe), TYPE* dest, const TYPE* source, size_t count, \
                       int pe)                                                                                         \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, put_nbi, void, (dest, source, count, pe), TYPE* dest, const TYPE* source,           \
                       size_t count, int pe)                                                                           \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, get_nbi, void, (dest, source, count, pe), TYPE* dest, const TYPE* source,           \
                       size_t count, int pe)                                                                           \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, iput, void, (dest, source, dst, sst, count, pe), TYPE* dest, const TYPE* source,    \
                       ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe)                                             \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, iget, void, (dest, source, dst, sst, count, pe), TYPE* dest, const TYPE* source,    \
                       ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe)                                             \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, ibput, void, (dest, source, dst, sst, bsize, nblocks, pe), TYPE* dest,              \
                       const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe)         \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, ibget, void, (dest, source, dst, sst, bsize, nblocks, pe), TYPE* dest,              \
                       const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe)         \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, put_signal, void, (dest, source, count, sig_addr, signal, sig_op, pe), TYPE* dest,  \
                       const TYPE* source, size_t count, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe)      \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, put_signal_nbi, void, (dest, source, count, sig_addr, signal, sig_op, pe),          \
                       TYPE* dest, const TYPE* source, size_t count, uint64_t* sig_addr, uint64_t signal, int sig_op,  \
                       int pe)
NPUSHMEM_RMA_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X

#define NPUSHMEM_X_CONTIGUOUS(BITS, BYTES)                                                                            \
    NPUSHMEM_SIZED_CTX(BITS, BYTES, put, , void, (dest, source, count, pe), void* dest, const void* source,           \
                       size_t count, int pe)                                                                          \
    NPUSHMEM_SIZED_CTX(BITS, BYTES, get, , void, (dest, source, count, pe), void* dest, const void* source,           \
                       size_t count, int pe)                                                                          \
    NPUSHMEM_SIZED_CTX(BITS, BYTES, put, _nbi, void, (dest, source, count, pe), void* dest, const void* source,       \
                       size_t count, int pe)                                                                          \
    NPUSHMEM_SIZED_CTX(BITS, BYTES, get, _nbi, void, (dest, source, count, pe), void* dest, const void* source,       \
                       size_t count, int pe)                                                                          \
    NPUSHMEM_SIZED_CTX(BITS, BYTES, put, _signal, void, (dest, source, count, sig_addr, signal, sig_op, pe),          \
                       void* dest, const void* source, size_t count, uint64_t* sig_addr, uint64_t signal, int sig_op, \
                       int pe)                                                                                        \
    NPUSHMEM_SIZED_CTX(BITS, BYTES, put, _signal_nbi, void, (dest, source, count, sig_addr, signal, sig_op, pe),      \
                       void* dest, const void* source, size_t count, uint64_t* sig_addr, uint64_t signal, int sig_op, \
                       int pe)
#define NPUSHMEM_X(BITS, BYTES)                                                                                        \
    NPUSHMEM_X_CONTIGUOUS(BITS, BYTES)                                                                                 \
    NPUSHMEM_SIZED_CTX(BITS, BYTES, iput, , void, (dest, source, dst, sst, count, pe), void* dest, const void* source, \
                       ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe)                                             \
    NPUSHMEM_SIZED_CTX(BITS, BYTES, iget, , void, (dest, source, dst, sst, count, pe), void* dest, const void* source, \
                       ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe)                                             \
    NPUSHMEM_SIZED_CTX(BITS, BYTES, ibput, , void, (dest, source, dst, sst, bsize, nblocks, pe), void* dest,           \
                       const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe)         \
    NPUSHMEM_SIZED_CTX(BITS, BYTES, ibget, , void, (dest, source, dst, sst, bsize, nblocks, pe), void* dest,           \
                       const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe)
NPUSHMEM_FOR_EACH_SIZE(NPUSHMEM_X)
NPUSHMEM_X_CONTIGUOUS(mem, 1)
#undef NPUSHMEM_X
#undef NPUSHMEM_X_CONTIGUOUS
