/* SPDX-License-Identifier: BSD-3-Clause */
/* npushmem: the symmetric-memory API, in the shape of OpenSHMEM 1.6 under the prefix npushmem_.
 *
 * Common to all functions. Symmetric memory: PEs are processes, numbered 0..npushmem_n_pes()-1. npushmem_malloc and the
 * related functions allocate an object that exists on every PE; the address of the local copy names all copies. The
 * executable's global and static variables are symmetric too between init and finalize. Not symmetric are: stacks,
 * memory from malloc, thread-local variables, variables of shared libraries, and constants. PEs that run different
 * executables share no variables, and a child of fork has its own. With NPUSHMEM_STATIC_DATA=0 variables are not
 * symmetric.
 *
 * Arguments: `dest` of a put, `source` of a get, the target of an atomic and a signal must be symmetric; the other side
 * may be any memory. Counts and strides are in elements of the function's type; in bytes only if the name contains mem.
 * A count of 0 does nothing.
 *
 * Wrong calls (before init, PE out of range, address not symmetric, count that overflows) do nothing but report: one
 * line in the log, and npushmemx_last_error(). With NPUSHMEM_ON_ERROR=job, the default, npushmem-run returns 1 after a
 * failure that the program cannot notice: the call returned neither a code nor NULL, and its thread did not call
 * npushmemx_last_error() afterwards. With NPUSHMEM_ON_ERROR=exit any failure ends the job.
 *
 * A child that a PE makes by fork is not a PE: all its calls but queries fail; it may end, or exec a program.
 *
 * Blocking calls fail if a PE that they depend on dies or NPUSHMEM_TIMEOUT expires. A death ends the job, unless
 * NPUSHMEM_ON_PEER_DEATH is survive (npushmemx.h, "Continuing without dead PEs").
 *
 * Threads: as requested by npushmem_init_thread.
 *
 * Errors: as described above for wrong calls.
 *
 * Ordering: by fence, quiet and the barriers; see npushmem/functions/setup.h. The functions that this header declares
 * itself order nothing.
 *
 * Parameters: status: exit status of the job; npes: not used; level: not used; requested, provided: as for init_thread;
 * major, minor, patch: the version of the headers. */
#ifndef NPUSHMEM_H
#define NPUSHMEM_H

#include <stddef.h>
#include <stdint.h>

#include "npushmem/handles.h"
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
#define NPUSHMEMX_VERSION_MINOR 2
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

/* The update of the signal word by put_signal. */
#define NPUSHMEM_SIGNAL_OP_SET 0
#define NPUSHMEM_SIGNAL_OP_ADD 1

/* Hints of npushmem_malloc_with_hints; may be combined. */
#define NPUSHMEM_MALLOC_ATOMICS_REMOTE 1L
#define NPUSHMEM_MALLOC_SIGNAL_REMOTE 2L

/* ---- The functions -------------------------------------------------------------------------------------------------
 * The header of each family documents its functions:
 *   npushmem/functions/setup.h        start and end, symmetric memory, fence, quiet, barrier_all, sync_all
 *   npushmem/functions/rma.h          put, get, their strided, non-blocking and signalling forms
 *   npushmem/functions/atomics.h      atomics, signals
 *   npushmem/functions/waits.h        wait_until, test, over one object and over many
 *   npushmem/functions/teams.h        teams, contexts
 *   npushmem/functions/collectives.h  broadcast to scans, locks
 *   npushmem/functions/active_sets.h  deprecated: collectives over active sets
 *   npushmem/functions/deprecated.h   names before 1.4
 * Types are those of npushmem/types.h. */
#define NPUSHMEM_DECLARE(NAME, RET, ...) NPUSHMEM_API RET npushmem_##NAME(__VA_ARGS__);
#define NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, ...) \
    NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)        \
    NPUSHMEM_DECLARE(ctx_##NAME##_##OP, RET, npushmem_ctx_t ctx, __VA_ARGS__)
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_SIZED_CTX(BITS, BYTES, PRE, POST, RET, ARGS, ...) \
    NPUSHMEM_DECLARE(PRE##BITS##POST, RET, __VA_ARGS__)            \
    NPUSHMEM_DECLARE(ctx_##PRE##BITS##POST, RET, npushmem_ctx_t ctx, __VA_ARGS__)
#define NPUSHMEM_UNTYPED_CTX(OP, RET, ARGS, ...) \
    NPUSHMEM_DECLARE(OP, RET, __VA_ARGS__)       \
    NPUSHMEM_DECLARE(ctx_##OP, RET, npushmem_ctx_t ctx, __VA_ARGS__)
#define NPUSHMEM_PLAIN(OP, RET, ARGS, ...) NPUSHMEM_DECLARE(OP, RET, __VA_ARGS__)
#define NPUSHMEM_OLD_REDUCTION(NAME, TYPE, OP, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP##_to_all, void, __VA_ARGS__)
#define NPUSHMEM_OLD_ATOMIC(NAME, TYPE, OP, NEW, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_OLD_WAIT(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_OLD_WAIT_UNTIL(OP, RET, ARGS, ...) NPUSHMEM_DECLARE(OP, RET, __VA_ARGS__)
#include "npushmem/functions.h"
#undef NPUSHMEM_DECLARE

NPUSHMEM_API void npushmem_global_exit(int status) __attribute__((noreturn));
/* Deprecated: as npushmem_init; the number is ignored. */
NPUSHMEM_API void npushmem_start_pes(int npes);
/* For tools that are linked in front of the library; does nothing here. */
NPUSHMEM_API void npushmem_pcontrol(int level, ...);

/* The functions that calls of init and init_thread expand to. They pass the version of the program's headers to the
 * library, which refuses to start under headers newer than itself. The plain functions, for tables of pointers and
 * other languages, assume that the program's headers are the library's own. */
NPUSHMEM_API void npushmemx_init_from(int major, int minor, int patch);
NPUSHMEM_API int npushmemx_init_thread_from(int requested, int* provided, int major, int minor, int patch);
/* For libnpushmem_openshmem: the same, for a program that calls the library by the names of OpenSHMEM and gets its
 * reports in them. A failed start by ..._init ends the process, as the standard requires, unless NPUSHMEM_ON_ERROR is
 * "report". The last function only selects those names for reports. */
NPUSHMEM_API void npushmemx_openshmem_init(void);
NPUSHMEM_API int npushmemx_openshmem_init_thread(int requested, int* provided);
NPUSHMEM_API void npushmemx_openshmem_names(void);
#define npushmem_init() npushmemx_init_from(NPUSHMEMX_VERSION_MAJOR, NPUSHMEMX_VERSION_MINOR, NPUSHMEMX_VERSION_PATCH)
#define npushmem_init_thread(requested, provided)                                                     \
    npushmemx_init_thread_from(requested, provided, NPUSHMEMX_VERSION_MAJOR, NPUSHMEMX_VERSION_MINOR, \
                               NPUSHMEMX_VERSION_PATCH)

#ifdef __cplusplus
}
#endif
#endif
