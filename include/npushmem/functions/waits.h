/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits and tests. Expanded several times; see npushmem/functions.h for the rows.
 *
 * All functions read this PE's own copies, which are symmetric and aligned, and return when (test: whether) objects
 * satisfy the comparison with the value; data that was put before that value is then visible. test returns 1 or 0 at
 * once and makes progress, so that a program may loop over it.
 *
 * The forms over `count` objects exclude those whose status[i] is not 0 (status may be NULL: none). all: waits until
 * every object satisfies the comparison. any: the index of one that does; SIZE_MAX if all are excluded (test_any: or if
 * none does). some: their number, at least one when waiting, and their indices in indices[0..number); 0 if all are
 * excluded. _vector: object i compares with values[i]. (1.6, section "Point-To-Point Synchronization Routines".)
 *
 * Errors: reported, without waiting: an object that is not symmetric or not aligned, an unknown comparison, a NULL
 * array. A wait that ends because a PE is lost or NPUSHMEM_TIMEOUT expires is reported with the value last seen.
 *
 * Ordering: data that was put before the observed value, with a fence or signal between, is visible on return.
 *
 * A wait sleeps after at most about two milliseconds, and earlier where PEs outnumber cores. A PE that maps the waiting
 * PE's memory wakes it with p, a put of one element or of up to 16 bytes, iput, a signal, the signal of put_signal, or
 * an atomic update. Larger puts, the program's own stores, also through npushmem_ptr, stores of kernels, and the
 * functions of npushmem/inline.h wake nobody: the waiting PE finds them within a 32nd of the time that it has waited,
 * and within 250 ms. It may find an update 2 ms late after others that did not satisfy the comparison. An arrival over
 * tcp, or over ucx or libfabric 1.17 on TCP, wakes it too. In a job with PEs that it reaches over other transports
 * without mapping them, or without a progress thread, it checks every 2 ms. */
#define NPUSHMEM_X(NAME, TYPE)                                                                                         \
    NPUSHMEM_TYPED(NAME, TYPE, wait_until, void, (object, comparison, value), TYPE* object, int comparison,            \
                   TYPE value)                                                                                         \
    NPUSHMEM_TYPED(NAME, TYPE, wait_until_all, void, (objects, count, status, comparison, value), TYPE* objects,       \
                   size_t count, const int* status, int comparison, TYPE value)                                        \
    NPUSHMEM_TYPED(NAME, TYPE, wait_until_any, size_t, (objects, count, status, comparison, value), TYPE* objects,     \
                   size_t count, const int* status, int comparison, TYPE value)                                        \
    NPUSHMEM_TYPED(NAME, TYPE, wait_until_some, size_t, (objects, count, indices, status, comparison, value),          \
                   TYPE* objects, size_t count, size_t* indices, const int* status, int comparison, TYPE value)        \
    NPUSHMEM_TYPED(NAME, TYPE, wait_until_all_vector, void, (objects, count, status, comparison, values),              \
                   TYPE* objects, size_t count, const int* status, int comparison, TYPE* values)                       \
    NPUSHMEM_TYPED(NAME, TYPE, wait_until_any_vector, size_t, (objects, count, status, comparison, values),            \
                   TYPE* objects, size_t count, const int* status, int comparison, TYPE* values)                       \
    NPUSHMEM_TYPED(NAME, TYPE, wait_until_some_vector, size_t, (objects, count, indices, status, comparison, values),  \
                   TYPE* objects, size_t count, size_t* indices, const int* status, int comparison, TYPE* values)      \
    NPUSHMEM_TYPED(NAME, TYPE, test, int, (object, comparison, value), TYPE* object, int comparison, TYPE value)       \
    NPUSHMEM_TYPED(NAME, TYPE, test_all, int, (objects, count, status, comparison, value), TYPE* objects,              \
                   size_t count, const int* status, int comparison, TYPE value)                                        \
    NPUSHMEM_TYPED(NAME, TYPE, test_any, size_t, (objects, count, status, comparison, value), TYPE* objects,           \
                   size_t count, const int* status, int comparison, TYPE value)                                        \
    NPUSHMEM_TYPED(NAME, TYPE, test_some, size_t, (objects, count, indices, status, comparison, value), TYPE* objects, \
                   size_t count, size_t* indices, const int* status, int comparison, TYPE value)                       \
    NPUSHMEM_TYPED(NAME, TYPE, test_all_vector, int, (objects, count, status, comparison, values), TYPE* objects,      \
                   size_t count, const int* status, int comparison, TYPE* values)                                      \
    NPUSHMEM_TYPED(NAME, TYPE, test_any_vector, size_t, (objects, count, status, comparison, values), TYPE* objects,   \
                   size_t count, const int* status, int comparison, TYPE* values)                                      \
    NPUSHMEM_TYPED(NAME, TYPE, test_some_vector, size_t, (objects, count, indices, status, comparison, values),        \
                   TYPE* objects, size_t count, size_t* indices, const int* status, int comparison, TYPE* values)
NPUSHMEM_ATOMIC_TYPES(NPUSHMEM_X)
#undef NPUSHMEM_X

/* Returns this PE's signal word, read atomically. */
NPUSHMEM_PLAIN(signal_fetch, uint64_t, (sig_addr), const uint64_t* sig_addr)
/* Returns the value that satisfied the comparison. */
NPUSHMEM_PLAIN(signal_wait_until, uint64_t, (sig_addr, comparison, value), uint64_t* sig_addr, int comparison,
               uint64_t value)
