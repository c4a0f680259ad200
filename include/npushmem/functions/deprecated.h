/* SPDX-License-Identifier: BSD-3-Clause */
/* Deprecated names. Expanded several times; see npushmem/functions.h for the rows.
 *
 * Errors: as for the functions of today that they name.
 *
 * Ordering: as for the functions of today that they name. */

/* Atomics under their names before 1.4; each is the function NAME##_atomic_ with a similar name. */
#define NPUSHMEM_X(NAME, TYPE)                                                                                        \
    NPUSHMEM_OLD_ATOMIC(NAME, TYPE, cswap, atomic_compare_swap, TYPE, (dest, cond, value, pe), TYPE* dest, TYPE cond, \
                        TYPE value, int pe)                                                                           \
    NPUSHMEM_OLD_ATOMIC(NAME, TYPE, fadd, atomic_fetch_add, TYPE, (dest, value, pe), TYPE* dest, TYPE value, int pe)  \
    NPUSHMEM_OLD_ATOMIC(NAME, TYPE, finc, atomic_fetch_inc, TYPE, (dest, pe), TYPE* dest, int pe)                     \
    NPUSHMEM_OLD_ATOMIC(NAME, TYPE, add, atomic_add, void, (dest, value, pe), TYPE* dest, TYPE value, int pe)         \
    NPUSHMEM_OLD_ATOMIC(NAME, TYPE, inc, atomic_inc, void, (dest, pe), TYPE* dest, int pe)
NPUSHMEM_FOR_EACH_OLD_ATOMIC_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X
#define NPUSHMEM_X(NAME, TYPE)                                                                                \
    NPUSHMEM_OLD_ATOMIC(NAME, TYPE, fetch, atomic_fetch, TYPE, (source, pe), const TYPE* source, int pe)      \
    NPUSHMEM_OLD_ATOMIC(NAME, TYPE, set, atomic_set, void, (dest, value, pe), TYPE* dest, TYPE value, int pe) \
    NPUSHMEM_OLD_ATOMIC(NAME, TYPE, swap, atomic_swap, TYPE, (dest, value, pe), TYPE* dest, TYPE value, int pe)
NPUSHMEM_FOR_EACH_OLD_EXTENDED_ATOMIC_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X

/* wait_until and test of types without atomic operations. */
#define NPUSHMEM_X(NAME, TYPE)                                                                              \
    NPUSHMEM_TYPED(NAME, TYPE, wait_until, void, (object, comparison, value), TYPE* object, int comparison, \
                   TYPE value)                                                                              \
    NPUSHMEM_TYPED(NAME, TYPE, test, int, (object, comparison, value), TYPE* object, int comparison, TYPE value)
NPUSHMEM_FOR_EACH_OLD_WAIT_UNTIL_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X

/* Waits until *object differs from `value`. */
#define NPUSHMEM_X(NAME, TYPE) NPUSHMEM_OLD_WAIT(NAME, TYPE, wait, void, (object, value), TYPE* object, TYPE value)
NPUSHMEM_FOR_EACH_OLD_WAIT_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X
NPUSHMEM_PLAIN(wait, void, (object, value), long* object, long value)
NPUSHMEM_OLD_WAIT_UNTIL(wait_until, void, (object, comparison, value), long* object, int comparison, long value)
