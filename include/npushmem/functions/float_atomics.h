/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic addition of floating-point numbers, with the prefix npushmemx_. Expanded several times; see
 * npushmem/functions.h for the rows.
 *
 * Each is atomic with respect to the other atomics on objects of the same type, among them atomic_fetch, atomic_set and
 * atomic_swap of npushmem/functions/atomics.h. The sum is rounded as the type does; with concurrent additions the order
 * decides its last bits. The target is aligned to its size.
 *
 * On a mapped PE it is the atomic of the CPU. Over a transport it repeats a compare-and-swap until no other update
 * comes between: at least one round trip, two for each other value than 0, and more under contention. So the call
 * returns when the addition is done, also the forms without a result and the _nbi forms.
 *
 * Errors: nothing changes, 0 is returned, and the failure is reported: as for put, and an object that is not aligned.
 * If a PE is lost meanwhile, the addition may have been made.
 *
 * Ordering: all have taken effect on return. They are not ordered after earlier puts. */
#define NPUSHMEM_X(NAME, TYPE)                                                                                    \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_fetch_add, TYPE, (dest, value, pe), TYPE* dest, TYPE value, int pe)     \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_add, void, (dest, value, pe), TYPE* dest, TYPE value, int pe)           \
    NPUSHMEM_TYPED_CTX(NAME, TYPE, atomic_fetch_add_nbi, void, (fetch, dest, value, pe), TYPE* fetch, TYPE* dest, \
                       TYPE value, int pe)
NPUSHMEM_FOR_EACH_FLOAT_ATOMIC_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X
