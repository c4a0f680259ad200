/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of npushmem/inline.h, for the prefix of NPUSHMEM_INLINE_NAME. Included once for each prefix, after the
 * declarations of the functions. */
#include <stddef.h>
#include <stdint.h>

#include "npushmem/inline/map.h"
#include "npushmem/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Only expanded: the compiler never emits such a function, and takes its address from the library. */
#define NPUSHMEM_INLINE_FUNCTION extern __inline__ __attribute__((gnu_inline, always_inline))

#ifndef NPUSHMEM_INLINE_FUNCTIONS_H
#define NPUSHMEM_INLINE_FUNCTIONS_H

/* As a call, a boundary for the compiler. */
#define NPUSHMEM_INLINE_BOUNDARY() __asm__ __volatile__("" : : : "memory")

/* Returns the address of `object` on `pe`; NULL: call the library. `bytes`, the size of the object, is a power of two
 * up to 16. An object that is aligned to its size and begins in the heap ends there, so that one comparison suffices.
 */
NPUSHMEM_INLINE_FUNCTION void* npushmem_inline_address(const void* object, size_t bytes, int pe) {
    const npushmemx_inline_map_t* const map = npushmemx_inline_v1;
    const uint64_t offset = (uintptr_t)object - map->heap;
    const uint32_t index = (uint32_t)pe - map->first_pe;
    unsigned char* found;
    if (__builtin_expect((uintptr_t)object % bytes != 0, 0) || __builtin_expect(offset >= map->heap_bytes, 0) ||
        __builtin_expect(index >= map->mapped_pes, 0))
        return NULL;
    found = (unsigned char*)map->peers + index * map->stride + offset;
    if (found == NULL) __builtin_unreachable();
    return found;
}

/* Each returns whether the data were copied. */
NPUSHMEM_INLINE_FUNCTION int npushmem_inline_put(void* dest, const void* source, size_t bytes, int pe) {
    void* const there = npushmem_inline_address(dest, bytes, pe);
    if (there == NULL || source == NULL) return 0;
    NPUSHMEM_INLINE_BOUNDARY();
    __builtin_memcpy(there, source, bytes);
    NPUSHMEM_INLINE_BOUNDARY();
    return 1;
}

NPUSHMEM_INLINE_FUNCTION int npushmem_inline_get(void* dest, const void* source, size_t bytes, int pe) {
    const void* const there = npushmem_inline_address(source, bytes, pe);
    if (there == NULL || dest == NULL) return 0;
    NPUSHMEM_INLINE_BOUNDARY();
    __builtin_memcpy(dest, there, bytes);
    NPUSHMEM_INLINE_BOUNDARY();
    return 1;
}

/* The signal releases: the data before it are visible to a PE that sees it. */
NPUSHMEM_INLINE_FUNCTION int npushmem_inline_put_signal(void* dest, const void* source, size_t bytes,
                                                        uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) {
    uint64_t* const word = (uint64_t*)npushmem_inline_address(sig_addr, sizeof(uint64_t), pe);
    if (word == NULL || (sig_op != 0 && sig_op != 1) || !npushmem_inline_put(dest, source, bytes, pe)) return 0;
    if (sig_op == 0) /* NPUSHMEM_SIGNAL_OP_SET */
        __atomic_store_n(word, signal, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(word, signal, __ATOMIC_RELEASE);
    return 1;
}

/* Returns whether the CPU's order suffices for fence and quiet. */
NPUSHMEM_INLINE_FUNCTION int npushmem_inline_all_mapped(void) {
    return __atomic_load_n(&npushmemx_inline_v1->all_mapped, __ATOMIC_RELAXED) != 0;
}

/* Orders stores before later loads. clang's own fence is a slower instruction. */
NPUSHMEM_INLINE_FUNCTION void npushmem_inline_full_fence(void) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    __asm__ __volatile__("lock; orl $0, -8(%%rsp)" : : : "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif /* of what does not depend on the prefix */

/* Begins the definition of a function. <NAME>_call is the library's function: another declaration with its symbol.
 * (clang takes a call of that symbol for a recursion, unless the symbol's spelling differs: \01 stands for nothing.) */
#if defined(__clang__)
#define NPUSHMEM_INLINE_MARK "\01"
#else
#define NPUSHMEM_INLINE_MARK
#endif
#define NPUSHMEM_INLINE_TEXT(NAME) #NAME
#define NPUSHMEM_INLINE_SYMBOL(NAME) NPUSHMEM_INLINE_MARK NPUSHMEM_INLINE_TEXT(NAME)
#define NPUSHMEM_INLINE_BEGIN(RET, NAME, ...)                                                                       \
    RET NPUSHMEM_INLINE_NAME(NAME##_call)(__VA_ARGS__) __asm__(NPUSHMEM_INLINE_SYMBOL(NPUSHMEM_INLINE_NAME(NAME))); \
    NPUSHMEM_INLINE_FUNCTION RET NPUSHMEM_INLINE_NAME(NAME)(__VA_ARGS__)

/* ---- Put and get ------------------------------------------------------------------------------------------------ */

#define NPUSHMEM_INLINE_COPY(NAME, COPY, USABLE, BYTES, TO, FROM)                           \
    NPUSHMEM_INLINE_BEGIN(void, NAME, TO* dest, const FROM* source, size_t count, int pe) { \
        if (!(USABLE) || !npushmem_inline_##COPY(dest, source, BYTES, pe))                  \
            NPUSHMEM_INLINE_NAME(NAME##_call)(dest, source, count, pe);                     \
    }
#define NPUSHMEM_INLINE_PUT_SIGNAL(NAME, USABLE, BYTES, TO)                                                          \
    NPUSHMEM_INLINE_BEGIN(void, NAME, TO* dest, const TO* source, size_t count, uint64_t* sig_addr, uint64_t signal, \
                          int sig_op, int pe) {                                                                      \
        if (!(USABLE) || !npushmem_inline_put_signal(dest, source, BYTES, sig_addr, signal, sig_op, pe))             \
            NPUSHMEM_INLINE_NAME(NAME##_call)(dest, source, count, sig_addr, signal, sig_op, pe);                    \
    }
#define NPUSHMEM_X(NAME, TYPE)                                                                                      \
    NPUSHMEM_INLINE_BEGIN(void, NAME##_p, TYPE* dest, TYPE value, int pe) {                                         \
        volatile TYPE* const there = (volatile TYPE*)npushmem_inline_address(dest, sizeof(TYPE), pe);               \
        if (there == NULL) {                                                                                        \
            NPUSHMEM_INLINE_NAME(NAME##_p_call)(dest, value, pe);                                                   \
        } else {                                                                                                    \
            NPUSHMEM_INLINE_BOUNDARY();                                                                             \
            *there = value;                                                                                         \
            NPUSHMEM_INLINE_BOUNDARY();                                                                             \
        }                                                                                                           \
    }                                                                                                               \
    NPUSHMEM_INLINE_BEGIN(TYPE, NAME##_g, const TYPE* source, int pe) {                                             \
        const volatile TYPE* const there = (const volatile TYPE*)npushmem_inline_address(source, sizeof(TYPE), pe); \
        TYPE value;                                                                                                 \
        if (there == NULL) return NPUSHMEM_INLINE_NAME(NAME##_g_call)(source, pe);                                  \
        NPUSHMEM_INLINE_BOUNDARY();                                                                                 \
        value = *there;                                                                                             \
        NPUSHMEM_INLINE_BOUNDARY();                                                                                 \
        return value;                                                                                               \
    }                                                                                                               \
    NPUSHMEM_INLINE_COPY(NAME##_put, put, count == 1, sizeof(TYPE), TYPE, TYPE)                                     \
    NPUSHMEM_INLINE_COPY(NAME##_put_nbi, put, count == 1, sizeof(TYPE), TYPE, TYPE)                                 \
    NPUSHMEM_INLINE_COPY(NAME##_get, get, count == 1, sizeof(TYPE), TYPE, TYPE)                                     \
    NPUSHMEM_INLINE_COPY(NAME##_get_nbi, get, count == 1, sizeof(TYPE), TYPE, TYPE)                                 \
    NPUSHMEM_INLINE_PUT_SIGNAL(NAME##_put_signal, count == 1, sizeof(TYPE), TYPE)                                   \
    NPUSHMEM_INLINE_PUT_SIGNAL(NAME##_put_signal_nbi, count == 1, sizeof(TYPE), TYPE)
NPUSHMEM_FOR_EACH_RMA_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X

#define NPUSHMEM_INLINE_UNTYPED(BITS, USABLE, BYTES)                      \
    NPUSHMEM_INLINE_COPY(put##BITS, put, USABLE, BYTES, void, void)       \
    NPUSHMEM_INLINE_COPY(put##BITS##_nbi, put, USABLE, BYTES, void, void) \
    NPUSHMEM_INLINE_COPY(get##BITS, get, USABLE, BYTES, void, void)       \
    NPUSHMEM_INLINE_COPY(get##BITS##_nbi, get, USABLE, BYTES, void, void) \
    NPUSHMEM_INLINE_PUT_SIGNAL(put##BITS##_signal, USABLE, BYTES, void)   \
    NPUSHMEM_INLINE_PUT_SIGNAL(put##BITS##_signal_nbi, USABLE, BYTES, void)
#define NPUSHMEM_X(BITS, BYTES) NPUSHMEM_INLINE_UNTYPED(BITS, count == 1, BYTES)
NPUSHMEM_FOR_EACH_SIZE(NPUSHMEM_X)
#undef NPUSHMEM_X
/* Here the count is in bytes. */
NPUSHMEM_INLINE_UNTYPED(
    mem, __builtin_constant_p(count) && (count == 1 || count == 2 || count == 4 || count == 8 || count == 16), count)

/* ---- Atomics and signals ---------------------------------------------------------------------------------------- */

/* The generic builtins, for floating-point numbers too. */
#define NPUSHMEM_X(NAME, TYPE)                                                                    \
    NPUSHMEM_INLINE_BEGIN(TYPE, NAME##_atomic_fetch, const TYPE* source, int pe) {                \
        const TYPE* const there = (const TYPE*)npushmem_inline_address(source, sizeof(TYPE), pe); \
        TYPE value;                                                                               \
        if (there == NULL) return NPUSHMEM_INLINE_NAME(NAME##_atomic_fetch_call)(source, pe);     \
        __atomic_load(there, &value, __ATOMIC_ACQUIRE);                                           \
        return value;                                                                             \
    }                                                                                             \
    NPUSHMEM_INLINE_BEGIN(void, NAME##_atomic_set, TYPE* dest, TYPE value, int pe) {              \
        TYPE* const there = (TYPE*)npushmem_inline_address(dest, sizeof(TYPE), pe);               \
        if (there == NULL)                                                                        \
            NPUSHMEM_INLINE_NAME(NAME##_atomic_set_call)(dest, value, pe);                        \
        else                                                                                      \
            __atomic_store(there, &value, __ATOMIC_RELEASE);                                      \
    }                                                                                             \
    NPUSHMEM_INLINE_BEGIN(TYPE, NAME##_atomic_swap, TYPE* dest, TYPE value, int pe) {             \
        TYPE* const there = (TYPE*)npushmem_inline_address(dest, sizeof(TYPE), pe);               \
        TYPE old;                                                                                 \
        if (there == NULL) return NPUSHMEM_INLINE_NAME(NAME##_atomic_swap_call)(dest, value, pe); \
        __atomic_exchange(there, &value, &old, __ATOMIC_ACQ_REL);                                 \
        return old;                                                                               \
    }
NPUSHMEM_FOR_EACH_EXTENDED_ATOMIC_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X

#define NPUSHMEM_INLINE_FETCHING(NAME, FORM, TYPE, WORD)                                              \
    NPUSHMEM_INLINE_BEGIN(TYPE, NAME##_atomic_##FORM, TYPE* dest, TYPE value, int pe) {               \
        TYPE* const there = (TYPE*)npushmem_inline_address(dest, sizeof(TYPE), pe);                   \
        if (there == NULL) return NPUSHMEM_INLINE_NAME(NAME##_atomic_##FORM##_call)(dest, value, pe); \
        return __atomic_fetch_##WORD(there, value, __ATOMIC_ACQ_REL);                                 \
    }
#define NPUSHMEM_INLINE_UPDATING(NAME, TYPE, WORD)                                  \
    NPUSHMEM_INLINE_BEGIN(void, NAME, TYPE* dest, TYPE value, int pe) {             \
        TYPE* const there = (TYPE*)npushmem_inline_address(dest, sizeof(TYPE), pe); \
        if (there == NULL)                                                          \
            NPUSHMEM_INLINE_NAME(NAME##_call)(dest, value, pe);                     \
        else                                                                        \
            (void)__atomic_fetch_##WORD(there, value, __ATOMIC_ACQ_REL);            \
    }
#define NPUSHMEM_X(NAME, TYPE)                                                                                  \
    NPUSHMEM_INLINE_FETCHING(NAME, fetch_add, TYPE, add)                                                        \
    NPUSHMEM_INLINE_UPDATING(NAME##_atomic_add, TYPE, add)                                                      \
    NPUSHMEM_INLINE_BEGIN(TYPE, NAME##_atomic_fetch_inc, TYPE* dest, int pe) {                                  \
        TYPE* const there = (TYPE*)npushmem_inline_address(dest, sizeof(TYPE), pe);                             \
        if (there == NULL) return NPUSHMEM_INLINE_NAME(NAME##_atomic_fetch_inc_call)(dest, pe);                 \
        return __atomic_fetch_add(there, (TYPE)1, __ATOMIC_ACQ_REL);                                            \
    }                                                                                                           \
    NPUSHMEM_INLINE_BEGIN(void, NAME##_atomic_inc, TYPE* dest, int pe) {                                        \
        TYPE* const there = (TYPE*)npushmem_inline_address(dest, sizeof(TYPE), pe);                             \
        if (there == NULL)                                                                                      \
            NPUSHMEM_INLINE_NAME(NAME##_atomic_inc_call)(dest, pe);                                             \
        else                                                                                                    \
            (void)__atomic_fetch_add(there, (TYPE)1, __ATOMIC_ACQ_REL);                                         \
    }                                                                                                           \
    NPUSHMEM_INLINE_BEGIN(TYPE, NAME##_atomic_compare_swap, TYPE* dest, TYPE cond, TYPE value, int pe) {        \
        TYPE* const there = (TYPE*)npushmem_inline_address(dest, sizeof(TYPE), pe);                             \
        if (there == NULL) return NPUSHMEM_INLINE_NAME(NAME##_atomic_compare_swap_call)(dest, cond, value, pe); \
        (void)__atomic_compare_exchange_n(there, &cond, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);          \
        return cond;                                                                                            \
    }
NPUSHMEM_FOR_EACH_ATOMIC_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X

#define NPUSHMEM_X(NAME, TYPE)                             \
    NPUSHMEM_INLINE_FETCHING(NAME, fetch_and, TYPE, and)   \
    NPUSHMEM_INLINE_FETCHING(NAME, fetch_or, TYPE, or)     \
    NPUSHMEM_INLINE_FETCHING(NAME, fetch_xor, TYPE, xor)   \
    NPUSHMEM_INLINE_UPDATING(NAME##_atomic_and, TYPE, and) \
    NPUSHMEM_INLINE_UPDATING(NAME##_atomic_or, TYPE, or)   \
    NPUSHMEM_INLINE_UPDATING(NAME##_atomic_xor, TYPE, xor)
NPUSHMEM_FOR_EACH_BITWISE_TYPE(NPUSHMEM_X)
#undef NPUSHMEM_X

NPUSHMEM_INLINE_BEGIN(void, signal_set, uint64_t* sig_addr, uint64_t signal, int pe) {
    uint64_t* const there = (uint64_t*)npushmem_inline_address(sig_addr, sizeof(uint64_t), pe);
    if (there == NULL)
        NPUSHMEM_INLINE_NAME(signal_set_call)(sig_addr, signal, pe);
    else
        __atomic_store_n(there, signal, __ATOMIC_RELEASE);
}
NPUSHMEM_INLINE_BEGIN(void, signal_add, uint64_t* sig_addr, uint64_t signal, int pe) {
    uint64_t* const there = (uint64_t*)npushmem_inline_address(sig_addr, sizeof(uint64_t), pe);
    if (there == NULL)
        NPUSHMEM_INLINE_NAME(signal_add_call)(sig_addr, signal, pe);
    else
        (void)__atomic_fetch_add(there, signal, __ATOMIC_ACQ_REL);
}
/* The word is this PE's, whatever this PE maps: the first mapped PE stands for the checks. */
NPUSHMEM_INLINE_BEGIN(uint64_t, signal_fetch, const uint64_t* sig_addr) {
    if (npushmem_inline_address(sig_addr, sizeof(uint64_t), (int)npushmemx_inline_v1->first_pe) == NULL)
        return NPUSHMEM_INLINE_NAME(signal_fetch_call)(sig_addr);
    return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}

/* ---- Ordering --------------------------------------------------------------------------------------------------- */

NPUSHMEM_INLINE_BEGIN(void, fence, void) {
    __atomic_thread_fence(__ATOMIC_RELEASE);
    if (!npushmem_inline_all_mapped()) NPUSHMEM_INLINE_NAME(fence_call)();
}
NPUSHMEM_INLINE_BEGIN(void, quiet, void) {
    if (npushmem_inline_all_mapped())
        npushmem_inline_full_fence();
    else
        NPUSHMEM_INLINE_NAME(quiet_call)();
}

#undef NPUSHMEM_INLINE_FUNCTION
#undef NPUSHMEM_INLINE_MARK
#undef NPUSHMEM_INLINE_TEXT
#undef NPUSHMEM_INLINE_SYMBOL
#undef NPUSHMEM_INLINE_BEGIN
#undef NPUSHMEM_INLINE_COPY
#undef NPUSHMEM_INLINE_PUT_SIGNAL
#undef NPUSHMEM_INLINE_UNTYPED
#undef NPUSHMEM_INLINE_FETCHING
#undef NPUSHMEM_INLINE_UPDATING

#ifdef __cplusplus
}
#endif
