/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of NVSHMEM that npushmem does not have: calls fail to compile, with the reason. Included by
 * npushmem/nvshmem.h. */
#ifndef NPUSHMEM_NVSHMEM_DEVICE_H
#define NPUSHMEM_NVSHMEM_DEVICE_H

#if !defined(NPUSHMEM_NO_CUDA_NAMES)
#define NPUSHMEM_NV_NO_KERNELS \
    _Pragma("GCC error \"npushmem has no CUDA device code: write kernels in the language of npushmem/npu/npu.hpp\"")
#define __global__ NPUSHMEM_NV_NO_KERNELS
#define __device__ NPUSHMEM_NV_NO_KERNELS
#define __host__
#endif

#ifdef __cplusplus
extern "C" {
#define NPUSHMEM_NV_ANY ...
#else
#define NPUSHMEM_NV_ANY
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

NPUSHMEM_NV_DEVICE(void, nvshmemx_flush, void)
NPUSHMEM_NV_GROUPS(void, flush, void)
NPUSHMEM_NV_GROUPS(void, barrier_all, void)
NPUSHMEM_NV_GROUPS(void, sync_all, void)
NPUSHMEM_NV_GROUPS(int, barrier, npushmem_team_t team)
NPUSHMEM_NV_GROUPS(int, sync, npushmem_team_t team)
NPUSHMEM_NV_GROUPS(int, team_sync, npushmem_team_t team)

#define NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_NV_DEVICE(RET, nvshmem_##NAME##_##OP, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/atomics.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_NV_DEVICE(RET, nvshmem_##NAME##_##OP, __VA_ARGS__)
#define NPUSHMEM_PLAIN(OP, RET, ARGS, ...) NPUSHMEM_NV_DEVICE(RET, nvshmem_##OP, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/waits.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY

#define NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_NV_GROUPS(RET, NAME##_##OP, __VA_ARGS__)
#define NPUSHMEM_SIZED_CTX(BITS, BYTES, PRE, POST, RET, ARGS, ...) NPUSHMEM_NV_GROUPS(RET, PRE##BITS##POST, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/rma.h"
#include "npushmem/functions.h"
#define NPUSHMEM_HALF_TYPES
#define NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_NV_GROUPS(RET, NAME##_##OP, __VA_ARGS__)
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_NV_GROUPS(RET, NAME##_##OP, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/collectives.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_NV_GROUPS(RET, NAME##_##OP, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/reducescatter.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_HALF_TYPES
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_NV_GROUPS(RET, NAME##_##OP, __VA_ARGS__)
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_NV_GROUPS(RET, NAME##_##OP, __VA_ARGS__)
#define NPUSHMEM_PLAIN(OP, RET, ARGS, ...) NPUSHMEM_NV_GROUPS(RET, OP, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/collectives.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY

#undef NPUSHMEM_NV_REFUSE
#undef NPUSHMEM_NV_DEVICE
#undef NPUSHMEM_NV_GROUPS
#undef NPUSHMEM_NV_ANY
#ifdef __cplusplus
}
#endif

#endif
