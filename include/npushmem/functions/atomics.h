/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics. Expanded several times; see npushmem/functions.h for the rows.
 *
 * Each is atomic with respect to every other atomic here on objects of the same type. Forms that return a value return
 * the old one; the _nbi forms store it into *fetch, which may be read after quiet. The target is aligned to its size.
 * (1.6, section "Atomic Memory Operations".)
 *
 * Errors: nothing changes, 0 is returned, and the failure is reported: as for put, and an object that is not aligned.
 *
 * Ordering: forms that return a value have taken effect on return; fence orders and quiet completes the others, as
 * puts. An atomic is not ordered after earlier puts. */
#define NPUSHMEM_X(NAME, TYPE)                                                                                   \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_fetch, TYPE, (source, pe), const TYPE* source, int pe)                 \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_set, void, (dest, value, pe), TYPE* dest, TYPE value, int pe)          \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_swap, TYPE, (dest, value, pe), TYPE* dest, TYPE value, int pe)         \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_fetch_nbi, void, (fetch, source, pe), TYPE* fetch, const TYPE* source, \
                       int pe)                                                                                   \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_swap_nbi, void, (fetch, dest, value, pe), TYPE* fetch, TYPE* dest,     \
                       TYPE value, int pe)
NPUSHMEM_EXTENDED_ATOMIC_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X

#define NPUSHMEM_X(NAME, TYPE)                                                                                     \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_compare_swap, TYPE, (dest, cond, value, pe), TYPE* dest, TYPE cond,      \
                       TYPE value, int pe)                                                                         \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_fetch_inc, TYPE, (dest, pe), TYPE* dest, int pe)                         \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_inc, void, (dest, pe), TYPE* dest, int pe)                               \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_fetch_add, TYPE, (dest, value, pe), TYPE* dest, TYPE value, int pe)      \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_add, void, (dest, value, pe), TYPE* dest, TYPE value, int pe)            \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_compare_swap_nbi, void, (fetch, dest, cond, value, pe), TYPE* fetch,     \
                       TYPE* dest, TYPE cond, TYPE value, int pe)                                                  \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_fetch_inc_nbi, void, (fetch, dest, pe), TYPE* fetch, TYPE* dest, int pe) \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_fetch_add_nbi, void, (fetch, dest, value, pe), TYPE* fetch, TYPE* dest,  \
                       TYPE value, int pe)
NPUSHMEM_ATOMIC_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X

#define NPUSHMEM_X_ONE(NAME, TYPE, WORD)                                                                               \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_fetch_##WORD, TYPE, (dest, value, pe), TYPE* dest, TYPE value, int pe)       \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_##WORD, void, (dest, value, pe), TYPE* dest, TYPE value, int pe)             \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_fetch_##WORD##_nbi, void, (fetch, dest, value, pe), TYPE* fetch, TYPE* dest, \
                       TYPE value, int pe)
#define NPUSHMEM_X(NAME, TYPE)      \
    NPUSHMEM_X_ONE(NAME, TYPE, and) \
    NPUSHMEM_X_ONE(NAME, TYPE, or)  \
    NPUSHMEM_X_ONE(NAME, TYPE, xor)
NPUSHMEM_BITWISE_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X
#undef NPUSHMEM_X_ONE

/* Sets or increases the 64-bit signal word of `pe`. The new value makes no other data visible: put_signal and fence
 * order data before it. (1.6, "Signaling Operations".) */
NPUSHMEM_UNTYPED_CTX(signal_set, void, (sig_addr, signal, pe), uint64_t* sig_addr, uint64_t signal, int pe)
NPUSHMEM_UNTYPED_CTX(signal_add, void, (sig_addr, signal, pe), uint64_t* sig_addr, uint64_t signal, int pe)
