/* npushmem: the symmetric-memory API, in the shape of OpenSHMEM 1.6 under the prefix npushmem_.
 *
 * What every function shares. Symmetric memory: a PE is a process, numbered 0..npushmem_n_pes()-1. npushmem_malloc and
 * its like give an object that exists on every PE, and the address of the own one names all of them.
 *
 * Arguments: `dest` of a put, `source` of a get, the target of an atomic and a signal must be symmetric; the other side
 * may be any memory. Counts are elements of the function's type, strides too; bytes only where the name says mem. A
 * count of 0 does nothing.
 *
 * Mistakes (called before init, PE out of range, address not symmetric, count that overflows) do nothing but report:
 * one line through the log, and npushmemx_last_error(). With NPUSHMEM_ON_ERROR=exit they also end the job.
 *
 * Blocking calls end with an error when a PE they depend on is dead or NPUSHMEM_TIMEOUT has passed.
 *
 * Threads: as asked for in npushmem_init_thread. Ordering: "fence" and "quiet" below. */
#ifndef NPUSHMEM_H
#define NPUSHMEM_H

#include <stddef.h>
#include <stdint.h>

#include "npushmem/types.h"

#if defined(__GNUC__)
#define NPUSHMEM_API __attribute__((visibility("default")))
#else
#define NPUSHMEM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the OpenSHMEM interface that the names follow. */
#define NPUSHMEM_MAJOR_VERSION 1
#define NPUSHMEM_MINOR_VERSION 6
#define NPUSHMEM_MAX_NAME_LEN 64
#define NPUSHMEM_VENDOR_STRING "npushmem"

/* Version of this library, not of the OpenSHMEM interface. */
#define NPUSHMEMX_VERSION_MAJOR 0
#define NPUSHMEMX_VERSION_MINOR 1
#define NPUSHMEMX_VERSION_PATCH 0

/* Levels of thread support, for npushmem_init_thread. */
#define NPUSHMEM_THREAD_SINGLE 0
#define NPUSHMEM_THREAD_FUNNELED 1
#define NPUSHMEM_THREAD_SERIALIZED 2
#define NPUSHMEM_THREAD_MULTIPLE 3

/* Comparisons, for waits and tests. */
#define NPUSHMEM_CMP_EQ 0
#define NPUSHMEM_CMP_NE 1
#define NPUSHMEM_CMP_GT 2
#define NPUSHMEM_CMP_LE 3
#define NPUSHMEM_CMP_LT 4
#define NPUSHMEM_CMP_GE 5

/* What a put_signal does to the signal word. */
#define NPUSHMEM_SIGNAL_OP_SET 0
#define NPUSHMEM_SIGNAL_OP_ADD 1

/* Hints of npushmem_malloc_with_hints; may be combined. */
#define NPUSHMEM_MALLOC_ATOMICS_REMOTE 1L
#define NPUSHMEM_MALLOC_SIGNAL_REMOTE 2L

/* ---- Start and end ------------------------------------------------------------------------------------------------
 */

/* Collective over all PEs. Starts the runtime as the environment says (npushmem-info -c lists the variables). May be
 * called again after npushmem_finalize, and more than once: the library ends with the last matching finalize. On
 * failure the cause is reported, npushmem-run ends the job as failed (see NPUSHMEM_ON_ERROR), and every other call says
 * that the library is not initialised; programs that can go on without it use npushmem_init_thread or
 * npushmemx_init_attr, which return the failure instead. */
NPUSHMEM_API void npushmem_init(void);
/* As npushmem_init, asking for a level of thread support; *provided (may be NULL) receives the level given. Returns 0,
 * or the code of npushmem/plugin/abi.h. */
NPUSHMEM_API int npushmem_init_thread(int requested, int* provided);
/* What a call of the two above becomes, so that the library learns which headers the program was compiled with: it
 * refuses to start under headers newer than itself. The plain functions, for tables of pointers and other languages,
 * take the program's headers to be the library's own. */
NPUSHMEM_API void npushmemx_init_from(int major, int minor, int patch);
NPUSHMEM_API int npushmemx_init_thread_from(int requested, int* provided, int major, int minor, int patch);
#define npushmem_init() npushmemx_init_from(NPUSHMEMX_VERSION_MAJOR, NPUSHMEMX_VERSION_MINOR, NPUSHMEMX_VERSION_PATCH)
#define npushmem_init_thread(requested, provided)                                                     \
    npushmemx_init_thread_from(requested, provided, NPUSHMEMX_VERSION_MAJOR, NPUSHMEMX_VERSION_MINOR, \
                               NPUSHMEMX_VERSION_PATCH)
/* Collective. Completes everything, waits for all PEs, releases everything. */
NPUSHMEM_API void npushmem_finalize(void);
/* Is the library between a successful init and finalize? *initialized receives 0 or 1. Any time. */
NPUSHMEM_API void npushmem_query_initialized(int* initialized);
NPUSHMEM_API void npushmem_query_thread(int* provided);
/* Ends all PEs at once with this exit status. Does not return. May be called by one PE alone. */
NPUSHMEM_API void npushmem_global_exit(int status) __attribute__((noreturn));
/* Number of this PE and of all PEs; -1 (and a report) outside init..finalize. */
NPUSHMEM_API int npushmem_my_pe(void);
NPUSHMEM_API int npushmem_n_pes(void);
/* 1 if the PE exists (address: and the object can be reached there), else 0. */
NPUSHMEM_API int npushmem_pe_accessible(int pe);
NPUSHMEM_API int npushmem_addr_accessible(const void* addr, int pe);
/* NPUSHMEM_MAJOR_VERSION and MINOR of the library that runs. Any time. */
NPUSHMEM_API void npushmem_info_get_version(int* major, int* minor);
/* Copies the library's name into name[NPUSHMEM_MAX_NAME_LEN]. Any time. */
NPUSHMEM_API void npushmem_info_get_name(char* name);

/* ---- Symmetric memory ----------------------------------------------------------------------------------------------
 * All of these are collective over all PEs, with equal arguments; a difference is found and reported on every PE that
 * can see it, with the PEs and the values, and nothing is allocated. NULL for size 0 and on failure, with a report that
 * has the numbers. Objects are aligned to 64 bytes unless more is asked for. */
NPUSHMEM_API void* npushmem_malloc(size_t bytes);
/* count * bytes, zeroed before any PE can return and put into it. */
NPUSHMEM_API void* npushmem_calloc(size_t count, size_t bytes);
/* alignment: a power of two, at least sizeof(void *). */
NPUSHMEM_API void* npushmem_align(size_t alignment, size_t bytes);
/* As realloc: keeps the first min(old, new) bytes; NULL object: malloc; 0 bytes: free. On failure the object stays. */
NPUSHMEM_API void* npushmem_realloc(void* object, size_t bytes);
/* NULL does nothing. Waits for all PEs before the memory can be used again. */
NPUSHMEM_API void npushmem_free(void* object);
NPUSHMEM_API void* npushmem_malloc_with_hints(size_t bytes, long hints);
/* Address at which this PE can load and store PE `pe`'s copy of a symmetric object; NULL if its memory cannot be mapped
 * or the arguments are wrong (the latter with a report). Stores made through it are ordered by fence and quiet like
 * puts. */
NPUSHMEM_API void* npushmem_ptr(const void* object, int pe);

/* ---- Put and get ---------------------------------------------------------------------------------------------------
 * put: returns when `source` may be reused; complete at `pe` after quiet. get: returns with the data in `dest`.
 * The forms ending in _nbi return at once: `source` (put) must not change and `dest` (get) must not be read before
 * quiet. iput, iget: element i goes from source[i * sst] to dest[i * dst]; strides count elements and are at least 1.
 * put_signal: as put, then the signal word of `pe` is set to or increased by `signal`, not before the data is there. */
#define NPUSHMEM_DECLARE_RMA(NAME, TYPE)                                                                             \
    NPUSHMEM_API void npushmem_##NAME##_p(TYPE* dest, TYPE value, int pe);                                           \
    NPUSHMEM_API TYPE npushmem_##NAME##_g(const TYPE* source, int pe);                                               \
    NPUSHMEM_API void npushmem_##NAME##_put(TYPE* dest, const TYPE* source, size_t count, int pe);                   \
    NPUSHMEM_API void npushmem_##NAME##_get(TYPE* dest, const TYPE* source, size_t count, int pe);                   \
    NPUSHMEM_API void npushmem_##NAME##_put_nbi(TYPE* dest, const TYPE* source, size_t count, int pe);               \
    NPUSHMEM_API void npushmem_##NAME##_get_nbi(TYPE* dest, const TYPE* source, size_t count, int pe);               \
    NPUSHMEM_API void npushmem_##NAME##_iput(TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst,           \
                                             size_t count, int pe);                                                  \
    NPUSHMEM_API void npushmem_##NAME##_iget(TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst,           \
                                             size_t count, int pe);                                                  \
    NPUSHMEM_API void npushmem_##NAME##_put_signal(TYPE* dest, const TYPE* source, size_t count, uint64_t* sig_addr, \
                                                   uint64_t signal, int sig_op, int pe);                             \
    NPUSHMEM_API void npushmem_##NAME##_put_signal_nbi(TYPE* dest, const TYPE* source, size_t count,                 \
                                                       uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
NPUSHMEM_FOR_EACH_RMA_TYPE(NPUSHMEM_DECLARE_RMA)
#undef NPUSHMEM_DECLARE_RMA

#define NPUSHMEM_DECLARE_SIZED(BITS, BYTES)                                                                           \
    NPUSHMEM_API void npushmem_put##BITS(void* dest, const void* source, size_t count, int pe);                       \
    NPUSHMEM_API void npushmem_get##BITS(void* dest, const void* source, size_t count, int pe);                       \
    NPUSHMEM_API void npushmem_put##BITS##_nbi(void* dest, const void* source, size_t count, int pe);                 \
    NPUSHMEM_API void npushmem_get##BITS##_nbi(void* dest, const void* source, size_t count, int pe);                 \
    NPUSHMEM_API void npushmem_iput##BITS(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, \
                                          int pe);                                                                    \
    NPUSHMEM_API void npushmem_iget##BITS(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, \
                                          int pe);                                                                    \
    NPUSHMEM_API void npushmem_put##BITS##_signal(void* dest, const void* source, size_t count, uint64_t* sig_addr,   \
                                                  uint64_t signal, int sig_op, int pe);                               \
    NPUSHMEM_API void npushmem_put##BITS##_signal_nbi(void* dest, const void* source, size_t count,                   \
                                                      uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
NPUSHMEM_FOR_EACH_SIZE(NPUSHMEM_DECLARE_SIZED)
#undef NPUSHMEM_DECLARE_SIZED

NPUSHMEM_API void npushmem_putmem(void* dest, const void* source, size_t bytes, int pe);
NPUSHMEM_API void npushmem_getmem(void* dest, const void* source, size_t bytes, int pe);
NPUSHMEM_API void npushmem_putmem_nbi(void* dest, const void* source, size_t bytes, int pe);
NPUSHMEM_API void npushmem_getmem_nbi(void* dest, const void* source, size_t bytes, int pe);
NPUSHMEM_API void npushmem_putmem_signal(void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                                         uint64_t signal, int sig_op, int pe);
NPUSHMEM_API void npushmem_putmem_signal_nbi(void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                                             uint64_t signal, int sig_op, int pe);

/* ---- Atomics -------------------------------------------------------------------------------------------------------
 * Each is one indivisible step with respect to every other atomic here on objects of the same type. Forms that return a
 * value return the old one; the _nbi forms store it into *fetch, which may be read after quiet. */
#define NPUSHMEM_DECLARE_EXTENDED_ATOMIC(NAME, TYPE)                                               \
    NPUSHMEM_API TYPE npushmem_##NAME##_atomic_fetch(const TYPE* source, int pe);                  \
    NPUSHMEM_API void npushmem_##NAME##_atomic_set(TYPE* dest, TYPE value, int pe);                \
    NPUSHMEM_API TYPE npushmem_##NAME##_atomic_swap(TYPE* dest, TYPE value, int pe);               \
    NPUSHMEM_API void npushmem_##NAME##_atomic_fetch_nbi(TYPE* fetch, const TYPE* source, int pe); \
    NPUSHMEM_API void npushmem_##NAME##_atomic_swap_nbi(TYPE* fetch, TYPE* dest, TYPE value, int pe);
NPUSHMEM_FOR_EACH_EXTENDED_ATOMIC_TYPE(NPUSHMEM_DECLARE_EXTENDED_ATOMIC)
#undef NPUSHMEM_DECLARE_EXTENDED_ATOMIC

#define NPUSHMEM_DECLARE_ATOMIC(NAME, TYPE)                                                                     \
    NPUSHMEM_API TYPE npushmem_##NAME##_atomic_compare_swap(TYPE* dest, TYPE cond, TYPE value, int pe);         \
    NPUSHMEM_API TYPE npushmem_##NAME##_atomic_fetch_inc(TYPE* dest, int pe);                                   \
    NPUSHMEM_API void npushmem_##NAME##_atomic_inc(TYPE* dest, int pe);                                         \
    NPUSHMEM_API TYPE npushmem_##NAME##_atomic_fetch_add(TYPE* dest, TYPE value, int pe);                       \
    NPUSHMEM_API void npushmem_##NAME##_atomic_add(TYPE* dest, TYPE value, int pe);                             \
    NPUSHMEM_API void npushmem_##NAME##_atomic_compare_swap_nbi(TYPE* fetch, TYPE* dest, TYPE cond, TYPE value, \
                                                                int pe);                                        \
    NPUSHMEM_API void npushmem_##NAME##_atomic_fetch_inc_nbi(TYPE* fetch, TYPE* dest, int pe);                  \
    NPUSHMEM_API void npushmem_##NAME##_atomic_fetch_add_nbi(TYPE* fetch, TYPE* dest, TYPE value, int pe);
NPUSHMEM_FOR_EACH_ATOMIC_TYPE(NPUSHMEM_DECLARE_ATOMIC)
#undef NPUSHMEM_DECLARE_ATOMIC

#define NPUSHMEM_DECLARE_BITWISE(NAME, TYPE)                                                               \
    NPUSHMEM_API TYPE npushmem_##NAME##_atomic_fetch_and(TYPE* dest, TYPE value, int pe);                  \
    NPUSHMEM_API TYPE npushmem_##NAME##_atomic_fetch_or(TYPE* dest, TYPE value, int pe);                   \
    NPUSHMEM_API TYPE npushmem_##NAME##_atomic_fetch_xor(TYPE* dest, TYPE value, int pe);                  \
    NPUSHMEM_API void npushmem_##NAME##_atomic_and(TYPE* dest, TYPE value, int pe);                        \
    NPUSHMEM_API void npushmem_##NAME##_atomic_or(TYPE* dest, TYPE value, int pe);                         \
    NPUSHMEM_API void npushmem_##NAME##_atomic_xor(TYPE* dest, TYPE value, int pe);                        \
    NPUSHMEM_API void npushmem_##NAME##_atomic_fetch_and_nbi(TYPE* fetch, TYPE* dest, TYPE value, int pe); \
    NPUSHMEM_API void npushmem_##NAME##_atomic_fetch_or_nbi(TYPE* fetch, TYPE* dest, TYPE value, int pe);  \
    NPUSHMEM_API void npushmem_##NAME##_atomic_fetch_xor_nbi(TYPE* fetch, TYPE* dest, TYPE value, int pe);
NPUSHMEM_FOR_EACH_BITWISE_TYPE(NPUSHMEM_DECLARE_BITWISE)
#undef NPUSHMEM_DECLARE_BITWISE

/* ---- Signals, waits and tests --------------------------------------------------------------------------------------
 * wait_until returns when *object compares true with value; what was put before the value was put is then visible. test
 * returns 1 or 0 at once and drives progress. Both look at the own PE's copy. */
#define NPUSHMEM_DECLARE_WAIT(NAME, TYPE)                                                     \
    NPUSHMEM_API void npushmem_##NAME##_wait_until(TYPE* object, int comparison, TYPE value); \
    NPUSHMEM_API int npushmem_##NAME##_test(TYPE* object, int comparison, TYPE value);
NPUSHMEM_FOR_EACH_ATOMIC_TYPE(NPUSHMEM_DECLARE_WAIT)
#undef NPUSHMEM_DECLARE_WAIT

/* The own signal word, read atomically. */
NPUSHMEM_API uint64_t npushmem_signal_fetch(const uint64_t* sig_addr);
/* Returns the value that satisfied the comparison. */
NPUSHMEM_API uint64_t npushmem_signal_wait_until(uint64_t* sig_addr, int comparison, uint64_t value);
/* Update the signal word of `pe`. */
NPUSHMEM_API void npushmem_signal_set(uint64_t* sig_addr, uint64_t signal, int pe);
NPUSHMEM_API void npushmem_signal_add(uint64_t* sig_addr, uint64_t signal, int pe);

/* ---- Ordering and synchronisation ----------------------------------------------------------------------------------
 * fence: puts, atomics and stores to a PE made before it are delivered before those made after it.
 * quiet: everything this PE has started is complete and visible to all PEs; _nbi results may be read.
 * barrier_all: quiet, then no PE returns before all have entered. sync_all: the same without quiet. */
NPUSHMEM_API void npushmem_fence(void);
NPUSHMEM_API void npushmem_quiet(void);
NPUSHMEM_API void npushmem_barrier_all(void);
NPUSHMEM_API void npushmem_sync_all(void);

#ifdef __cplusplus
}
#endif
#endif
