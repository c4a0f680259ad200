/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenSHMEM 1.6, by npushmem. Link with -lnpushmem_openshmem (or use oshcc). npushmem/functions/<family>.h documents
 * each function, under the prefix npushmem_. Every function also exists as pshmem_<name>, for which shmem_<name> is a
 * weak name, so that a profiling tool can replace it. With NPUSHMEM_INLINE defined, operations on words of mapped PEs
 * are expanded without a call (npushmem/inline.h). */
#ifndef SHMEM_H
#define SHMEM_H

#include <stddef.h>
#include <stdint.h>

#include "npushmem/handles.h"
#include "npushmem/types.h"
#if defined(__cplusplus) && !defined(NPUSHMEM_NO_GENERICS)
#include <complex>
#undef NPUSHMEM_COMPLEXD
#undef NPUSHMEM_COMPLEXF
#define NPUSHMEM_COMPLEXD std::complex<double>
#define NPUSHMEM_COMPLEXF std::complex<float>
#endif

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN 64
#define SHMEM_VENDOR_STRING "npushmem"

/* Programs such as shmem4py recognise Sandia OpenSHMEM by these two, and then use the whole interface of 1.5; for an
 * unknown library they define substitutes under the same names. */
#define SHMEM_DEF_H
#define SHMEM_FUNCTION_ATTRIBUTES

#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_LE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_GE 5

#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

#define SHMEM_MALLOC_ATOMICS_REMOTE 1L
#define SHMEM_MALLOC_SIGNAL_REMOTE 2L

typedef npushmem_ctx_t shmem_ctx_t;
typedef npushmem_team_t shmem_team_t;
typedef npushmem_team_config_t shmem_team_config_t;
typedef npushmem_ctx_session_config_t shmem_ctx_session_config_t;

#define SHMEM_CTX_INVALID NPUSHMEM_CTX_INVALID
#define SHMEM_CTX_DEFAULT NPUSHMEM_CTX_DEFAULT
#define SHMEM_CTX_SERIALIZED NPUSHMEM_CTX_SERIALIZED
#define SHMEM_CTX_PRIVATE NPUSHMEM_CTX_PRIVATE
#define SHMEM_CTX_NOSTORE NPUSHMEM_CTX_NOSTORE
#define SHMEM_CTX_SESSION_BATCH NPUSHMEM_CTX_SESSION_BATCH
#define SHMEM_CTX_SESSION_TOTAL_OPS NPUSHMEM_CTX_SESSION_TOTAL_OPS
#define SHMEM_TEAM_INVALID NPUSHMEM_TEAM_INVALID
#define SHMEM_TEAM_WORLD NPUSHMEM_TEAM_WORLD
#define SHMEM_TEAM_SHARED NPUSHMEM_TEAM_SHARED
#define SHMEM_TEAM_NUM_CONTEXTS NPUSHMEM_TEAM_NUM_CONTEXTS

#define SHMEM_SYNC_VALUE NPUSHMEM_SYNC_VALUE
#define SHMEM_SYNC_SIZE NPUSHMEM_SYNC_SIZE
#define SHMEM_BARRIER_SYNC_SIZE NPUSHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE NPUSHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE NPUSHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE NPUSHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE NPUSHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE NPUSHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE NPUSHMEM_REDUCE_MIN_WRKDATA_SIZE

/* Deprecated. */
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_ALLTOALL_SYNC_SIZE SHMEM_ALLTOALL_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

#if defined(__GNUC__)
#define NPUSHMEM_SHMEM_API __attribute__((visibility("default")))
#else
#define NPUSHMEM_SHMEM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define NPUSHMEM_DECLARE(NAME, RET, ...)              \
    NPUSHMEM_SHMEM_API RET shmem_##NAME(__VA_ARGS__); \
    NPUSHMEM_SHMEM_API RET pshmem_##NAME(__VA_ARGS__);
#define NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, ...) \
    NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)        \
    NPUSHMEM_DECLARE(ctx_##NAME##_##OP, RET, shmem_ctx_t ctx, __VA_ARGS__)
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_SIZED_CTX(BITS, BYTES, PRE, POST, RET, ARGS, ...) \
    NPUSHMEM_DECLARE(PRE##BITS##POST, RET, __VA_ARGS__)            \
    NPUSHMEM_DECLARE(ctx_##PRE##BITS##POST, RET, shmem_ctx_t ctx, __VA_ARGS__)
#define NPUSHMEM_UNTYPED_CTX(OP, RET, ARGS, ...) \
    NPUSHMEM_DECLARE(OP, RET, __VA_ARGS__)       \
    NPUSHMEM_DECLARE(ctx_##OP, RET, shmem_ctx_t ctx, __VA_ARGS__)
#define NPUSHMEM_PLAIN(OP, RET, ARGS, ...) NPUSHMEM_DECLARE(OP, RET, __VA_ARGS__)
#define NPUSHMEM_OLD_REDUCTION(NAME, TYPE, OP, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP##_to_all, void, __VA_ARGS__)
#define NPUSHMEM_OLD_ATOMIC(NAME, TYPE, OP, NEW, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_OLD_WAIT(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#if defined(__cplusplus) && !defined(NPUSHMEM_NO_GENERICS)
/* In C++ wait_until of long is one of the overloads. */
#define NPUSHMEM_OLD_WAIT_UNTIL(OP, RET, ARGS, ...) NPUSHMEM_SHMEM_API RET pshmem_##OP(__VA_ARGS__);
#else
#define NPUSHMEM_OLD_WAIT_UNTIL(OP, RET, ARGS, ...) NPUSHMEM_DECLARE(OP, RET, __VA_ARGS__)
#endif
#include "npushmem/functions.h"
#undef NPUSHMEM_DECLARE

NPUSHMEM_SHMEM_API void shmem_global_exit(int status) __attribute__((noreturn));
NPUSHMEM_SHMEM_API void shmem_pcontrol(int level, ...);
NPUSHMEM_SHMEM_API void pshmem_pcontrol(int level, ...);
NPUSHMEM_SHMEM_API void start_pes(int npes);
NPUSHMEM_SHMEM_API void pstart_pes(int npes);

#ifdef __cplusplus
}
#endif

#if defined(NPUSHMEM_INLINE) && defined(__GNUC__)
/* Expanded where the PE is mapped: npushmem/inline.h. */
#define NPUSHMEM_INLINE_NAME(NAME) shmem_##NAME
#include "npushmem/inline/functions.h"
#undef NPUSHMEM_INLINE_NAME
#endif

#if defined(NPUSHMEM_NO_GENERICS)
/* The functions alone. */
#elif defined(__cplusplus)
#include "npushmem/generic/complex_overloads.hpp"
#include "npushmem/generic/overloads.hpp"
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && !defined(__STDC_NO_GENERIC__)
#include "npushmem/generic/c11.h"
#endif

#if !defined(NPUSHMEM_NO_OLD_NAMES)
#include "npushmem/old_names.h"
#endif

#endif
