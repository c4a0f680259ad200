/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of NVSHMEM that npushmem does not have: calls fail to compile, with the reason. Included by
 * npushmem/nvshmem.h. */
#ifndef NPUSHMEM_NVSHMEM_DEVICE_H
#define NPUSHMEM_NVSHMEM_DEVICE_H

/* Parameters that are not listed: before C23, C has no other declaration of a function with any parameters. */
#ifdef __cplusplus
extern "C" {
#define NPUSHMEM_NV_ANY ...
#elif __STDC_VERSION__ > 201710L && (__GNUC__ >= 13 || __clang_major__ >= 15)
#define NPUSHMEM_NV_ANY ...
#else
#define NPUSHMEM_NV_ANY
#endif
#ifndef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif

#define NPUSHMEM_NV_REFUSE(RET, NAME, REASON, ...) RET NAME(__VA_ARGS__) __attribute__((error(REASON)));
#define NPUSHMEM_NV_DEVICE(RET, NAME, ...)                                                                            \
    NPUSHMEM_NV_REFUSE(RET, NAME,                                                                                     \
                       "this is a function of NVSHMEM's device code, which npushmem does not have: write kernels in " \
                       "the language of npushmem/npu/npu.hpp, or call functions with the prefix npushmem_ in host "   \
                       "code",                                                                                        \
                       __VA_ARGS__)
/* The forms for a block and a warp of threads. */
#define NPUSHMEM_NV_GROUPS(RET, NAME, ...)                        \
    NPUSHMEM_NV_DEVICE(RET, nvshmemx_##NAME##_block, __VA_ARGS__) \
    NPUSHMEM_NV_DEVICE(RET, nvshmemx_##NAME##_warp, __VA_ARGS__)

/* ---- Launches, modules, queue pairs, buffers of the program ------------------------------------------------------ */

#define NPUSHMEM_NV_LAUNCH(NAME)                                                                                 \
    NPUSHMEM_NV_REFUSE(int, nvshmemx_##NAME,                                                                     \
                       "this is for CUDA kernels, which npushmem does not have: launch kernels of its language " \
                       "by npushmem::npu::launch of npushmem/npu/npu.hpp",                                       \
                       NPUSHMEM_NV_ANY)
NPUSHMEM_NV_LAUNCH(collective_launch)
NPUSHMEM_NV_LAUNCH(collective_launch_query_gridsize)
NPUSHMEM_NV_LAUNCH(cumodule_init)
NPUSHMEM_NV_LAUNCH(cumodule_finalize)
NPUSHMEM_NV_LAUNCH(culibrary_init)
NPUSHMEM_NV_LAUNCH(culibrary_finalize)
#undef NPUSHMEM_NV_LAUNCH
NPUSHMEM_NV_REFUSE(int, nvshmemx_qp_create, "npushmem selects the queue pairs of kernels itself: leave out this call",
                   NPUSHMEM_NV_ANY)
NPUSHMEM_NV_REFUSE(void*, nvshmemx_buffer_register_symmetric_at_preferred_address,
                   "npushmem selects symmetric addresses itself: call nvshmemx_buffer_register_symmetric",
                   NPUSHMEM_NV_ANY)

/* ---- Functions of device code -------------------------------------------------------------------------------------
 */

NPUSHMEM_NV_GROUPS(void, flush, void)
NPUSHMEM_NV_GROUPS(void, barrier_all, void)
NPUSHMEM_NV_GROUPS(void, sync_all, void)
NPUSHMEM_NV_GROUPS(int, barrier, nvshmem_team_t team)
NPUSHMEM_NV_GROUPS(int, sync, nvshmem_team_t team)
NPUSHMEM_NV_GROUPS(int, team_sync, nvshmem_team_t team)

#define NPUSHMEM_NV_X(NAME, TYPE)                                                         \
    NPUSHMEM_NV_DEVICE(TYPE, nvshmem_##NAME##_atomic_fetch, const TYPE* source, int pe)   \
    NPUSHMEM_NV_DEVICE(void, nvshmem_##NAME##_atomic_set, TYPE* dest, TYPE value, int pe) \
    NPUSHMEM_NV_DEVICE(TYPE, nvshmem_##NAME##_atomic_swap, TYPE* dest, TYPE value, int pe)
NPUSHMEM_FOR_EACH_EXTENDED_ATOMIC_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_X(NAME, TYPE)                                                                             \
    NPUSHMEM_NV_DEVICE(TYPE, nvshmem_##NAME##_atomic_compare_swap, TYPE* dest, TYPE cond, TYPE value, int pe) \
    NPUSHMEM_NV_DEVICE(TYPE, nvshmem_##NAME##_atomic_fetch_inc, TYPE* dest, int pe)                           \
    NPUSHMEM_NV_DEVICE(void, nvshmem_##NAME##_atomic_inc, TYPE* dest, int pe)                                 \
    NPUSHMEM_NV_DEVICE(TYPE, nvshmem_##NAME##_atomic_fetch_add, TYPE* dest, TYPE value, int pe)               \
    NPUSHMEM_NV_DEVICE(void, nvshmem_##NAME##_atomic_add, TYPE* dest, TYPE value, int pe)
NPUSHMEM_FOR_EACH_ATOMIC_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_BITS(NAME, TYPE, OP)                                                         \
    NPUSHMEM_NV_DEVICE(TYPE, nvshmem_##NAME##_atomic_fetch_##OP, TYPE* dest, TYPE value, int pe) \
    NPUSHMEM_NV_DEVICE(void, nvshmem_##NAME##_atomic_##OP, TYPE* dest, TYPE value, int pe)
#define NPUSHMEM_NV_X(NAME, TYPE)     \
    NPUSHMEM_NV_BITS(NAME, TYPE, and) \
    NPUSHMEM_NV_BITS(NAME, TYPE, or)  \
    NPUSHMEM_NV_BITS(NAME, TYPE, xor)
NPUSHMEM_FOR_EACH_BITWISE_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#undef NPUSHMEM_NV_BITS
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_NV_DEVICE(RET, nvshmem_##NAME##_##OP, __VA_ARGS__)
/* Host code has signal_fetch. */
#define NPUSHMEM_NV_signal_fetch(...)
#define NPUSHMEM_NV_signal_wait_until(...) NPUSHMEM_NV_DEVICE(uint64_t, nvshmem_signal_wait_until, __VA_ARGS__)
#define NPUSHMEM_PLAIN(OP, RET, ARGS, ...) NPUSHMEM_NV_##OP(__VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/waits.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#undef NPUSHMEM_NV_signal_fetch
#undef NPUSHMEM_NV_signal_wait_until
/* Waits have two types more than OpenSHMEM's. */
#define NPUSHMEM_ATOMIC_TYPES NPUSHMEM_FOR_EACH_OLD_WAIT_UNTIL_TYPE
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_NV_DEVICE(RET, nvshmem_##NAME##_##OP, __VA_ARGS__)
#define NPUSHMEM_PLAIN(...)
#include "npushmem/functions/waits.h"
#undef NPUSHMEM_ATOMIC_TYPES
#undef NPUSHMEM_TYPED
#undef NPUSHMEM_PLAIN

/* ---- Put, get and collectives by a block or a warp -----------------------------------------------------------------
 */

#define NPUSHMEM_NV_ARRAYS(NAME, TYPE) \
    NPUSHMEM_NV_GROUPS(void, NAME, TYPE* dest, const TYPE* source, size_t count, int pe)
#define NPUSHMEM_NV_SIGNALLED(NAME, TYPE)                                                                             \
    NPUSHMEM_NV_GROUPS(void, NAME, TYPE* dest, const TYPE* source, size_t count, uint64_t* sig_addr, uint64_t signal, \
                       int sig_op, int pe)
#define NPUSHMEM_NV_STRIDED(NAME, TYPE) \
    NPUSHMEM_NV_GROUPS(void, NAME, TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe)
#define NPUSHMEM_NV_CONTIGUOUS(PRE, POST, TYPE)          \
    NPUSHMEM_NV_ARRAYS(PRE##put##POST, TYPE)             \
    NPUSHMEM_NV_ARRAYS(PRE##get##POST, TYPE)             \
    NPUSHMEM_NV_ARRAYS(PRE##put##POST##_nbi, TYPE)       \
    NPUSHMEM_NV_ARRAYS(PRE##get##POST##_nbi, TYPE)       \
    NPUSHMEM_NV_SIGNALLED(PRE##put##POST##_signal, TYPE) \
    NPUSHMEM_NV_SIGNALLED(PRE##put##POST##_signal_nbi, TYPE)
#define NPUSHMEM_NV_COLLECTIVE(NAME, TYPE) \
    NPUSHMEM_NV_GROUPS(int, NAME, nvshmem_team_t team, TYPE* dest, const TYPE* source, size_t count)
#define NPUSHMEM_NV_COLLECTIVES(PRE, POST, TYPE)                                                                     \
    NPUSHMEM_NV_GROUPS(int, PRE##broadcast##POST, nvshmem_team_t team, TYPE* dest, const TYPE* source, size_t count, \
                       int root)                                                                                     \
    NPUSHMEM_NV_COLLECTIVE(PRE##fcollect##POST, TYPE)                                                                \
    NPUSHMEM_NV_COLLECTIVE(PRE##alltoall##POST, TYPE)
#define NPUSHMEM_NV_REDUCTION(NAME, TYPE)       \
    NPUSHMEM_NV_COLLECTIVE(NAME##_reduce, TYPE) \
    NPUSHMEM_NV_COLLECTIVE(NAME##_reducescatter, TYPE)
#define NPUSHMEM_NV_X(NAME, TYPE)            \
    NPUSHMEM_NV_CONTIGUOUS(NAME##_, , TYPE)  \
    NPUSHMEM_NV_STRIDED(NAME##_iput, TYPE)   \
    NPUSHMEM_NV_STRIDED(NAME##_iget, TYPE)   \
    NPUSHMEM_NV_COLLECTIVES(NAME##_, , TYPE) \
    NPUSHMEM_NV_REDUCTION(NAME##_max, TYPE)  \
    NPUSHMEM_NV_REDUCTION(NAME##_min, TYPE)  \
    NPUSHMEM_NV_REDUCTION(NAME##_sum, TYPE)  \
    NPUSHMEM_NV_REDUCTION(NAME##_prod, TYPE)
NPUSHMEM_FOR_EACH_COMMON_RMA_TYPE(NPUSHMEM_NV_X)
NPUSHMEM_FOR_EACH_HALF_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_X(NAME, TYPE)           \
    NPUSHMEM_NV_REDUCTION(NAME##_and, TYPE) \
    NPUSHMEM_NV_REDUCTION(NAME##_or, TYPE)  \
    NPUSHMEM_NV_REDUCTION(NAME##_xor, TYPE)
NPUSHMEM_FOR_EACH_BITWISE_REDUCTION_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_X(BITS, BYTES)        \
    NPUSHMEM_NV_CONTIGUOUS(, BITS, void)  \
    NPUSHMEM_NV_STRIDED(iput##BITS, void) \
    NPUSHMEM_NV_STRIDED(iget##BITS, void)
NPUSHMEM_FOR_EACH_SIZE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
NPUSHMEM_NV_CONTIGUOUS(, mem, void)
NPUSHMEM_NV_COLLECTIVES(, mem, void)
#undef NPUSHMEM_NV_ARRAYS
#undef NPUSHMEM_NV_SIGNALLED
#undef NPUSHMEM_NV_STRIDED
#undef NPUSHMEM_NV_CONTIGUOUS
#undef NPUSHMEM_NV_COLLECTIVE
#undef NPUSHMEM_NV_COLLECTIVES
#undef NPUSHMEM_NV_REDUCTION

/* ---- Functions of device code on a queue pair ---------------------------------------------------------------------
 */

#define NPUSHMEM_NV_QP(RET, NAME, ...) \
    NPUSHMEM_NV_DEVICE(RET, nvshmemx_qp_##NAME, __VA_ARGS__, nvshmemx_qp_handle_t qp_index)
#define NPUSHMEM_NV_QP_GROUPS(RET, NAME, ...)      \
    NPUSHMEM_NV_QP(RET, NAME, __VA_ARGS__)         \
    NPUSHMEM_NV_QP(RET, NAME##_block, __VA_ARGS__) \
    NPUSHMEM_NV_QP(RET, NAME##_warp, __VA_ARGS__)
#define NPUSHMEM_NV_QP_ARRAYS(NAME, TYPE) \
    NPUSHMEM_NV_QP_GROUPS(void, NAME, TYPE* dest, const TYPE* source, size_t count, int pe)
#define NPUSHMEM_NV_QP_SIGNALLED(NAME, TYPE)                                                            \
    NPUSHMEM_NV_QP_GROUPS(void, NAME, TYPE* dest, const TYPE* source, size_t count, uint64_t* sig_addr, \
                          uint64_t signal, int sig_op, int pe)
#define NPUSHMEM_NV_X(NAME, TYPE)                                  \
    NPUSHMEM_NV_QP(void, NAME##_p, TYPE* dest, TYPE value, int pe) \
    NPUSHMEM_NV_QP(TYPE, NAME##_g, const TYPE* source, int pe)     \
    NPUSHMEM_NV_QP_ARRAYS(NAME##_put, TYPE)                        \
    NPUSHMEM_NV_QP_ARRAYS(NAME##_get, TYPE)                        \
    NPUSHMEM_NV_QP_ARRAYS(NAME##_put_nbi, TYPE)                    \
    NPUSHMEM_NV_QP_ARRAYS(NAME##_get_nbi, TYPE)                    \
    NPUSHMEM_NV_QP_SIGNALLED(NAME##_put_signal, TYPE)              \
    NPUSHMEM_NV_QP_SIGNALLED(NAME##_put_signal_nbi, TYPE)
NPUSHMEM_FOR_EACH_COMMON_RMA_TYPE(NPUSHMEM_NV_X)
NPUSHMEM_FOR_EACH_HALF_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
NPUSHMEM_NV_QP(void, signal_op, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe)
#define NPUSHMEM_NV_ORDER(NAME) \
    NPUSHMEM_NV_DEVICE(void, nvshmemx_qp_##NAME, int pe, nvshmemx_qp_handle_t* qp_handle, int num_qps)
NPUSHMEM_NV_ORDER(quiet)
NPUSHMEM_NV_ORDER(quiet_block)
NPUSHMEM_NV_ORDER(quiet_warp)
NPUSHMEM_NV_ORDER(fence)
NPUSHMEM_NV_ORDER(fence_block)
NPUSHMEM_NV_ORDER(fence_warp)
#undef NPUSHMEM_NV_ORDER
#undef NPUSHMEM_NV_QP
#undef NPUSHMEM_NV_QP_GROUPS
#undef NPUSHMEM_NV_QP_ARRAYS
#undef NPUSHMEM_NV_QP_SIGNALLED

#undef NPUSHMEM_NV_REFUSE
#undef NPUSHMEM_NV_DEVICE
#undef NPUSHMEM_NV_GROUPS
#undef NPUSHMEM_NV_ANY
#ifdef __cplusplus
}
#else
#pragma GCC diagnostic pop
#endif

#endif
