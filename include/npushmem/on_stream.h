/* SPDX-License-Identifier: BSD-3-Clause */
/* Host operations in the order of a stream of the emulated NPU: npushmemx_*_on_stream. Included by npushmemx.h.
 *
 * Each call queues the operation and returns at once. Operations run on the device's worker, or on a thread that
 * synchronizes. Waits, barriers and collectives let operations and kernels of other streams run meanwhile. A barrier or
 * collective has a thread of its own until it ends, and counts as a call of that thread: no other thread may use the
 * same team at that time. Any thread may call, but not from inside a kernel.
 *
 * Errors: the return value is 0 if the operation was queued, or a code of npushmem/plugin/abi.h with a report (not
 * initialised, a closed stream, an argument whose error is visible at once). A later failure is the stream's:
 * operations queued behind do not run, and the next npushmemx_stream_synchronize (or Stream::synchronize) returns it;
 * after that the stream accepts work again. The failure is also reported, under the name of the plain function.
 *
 * Ordering: an operation begins when everything queued in the stream before it has ended, kernels included; operations
 * queued behind wait for it. A put is then complete at its target.
 *
 * Parameters: stream: a stream of this PE's device, NULL for the default one; dest, source: as for the plain functions,
 * valid until the operation has ended; bytes: number of bytes, of each PE if the operation is collective; pe: the PE
 * whose memory is used, in the world; sig_addr: a signal word in symmetric memory; signal, sig_op: as for
 * npushmem_putmem_signal; comparison: NPUSHMEM_CMP_x; value: the value to compare with; team: all its members call;
 * root: the member that has the source. */
#ifndef NPUSHMEM_ON_STREAM_H
#define NPUSHMEM_ON_STREAM_H

#include "npushmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stream of this PE's device; NULL is the default one. In C++ the address of an npushmem::npu::Stream of
 * npushmem::npu::device() is a stream too: npushmem/npu/on_stream.hpp. */
typedef struct npushmemx_stream_s* npushmemx_stream_t;

/* Makes a stream; *stream receives it. Also before init: then the stream gets this PE's device at its first use. A
 * stream that was used belongs to the world that was current then, and to this run of the library: other calls with it
 * fail (NPUSHMEM_E_ARGUMENT). Destroy it before finalize, or later, when its operations have ended. Streams do not wait
 * for each other, nor for the default stream. */
NPUSHMEM_API int npushmemx_stream_create(npushmemx_stream_t* stream);
/* Waits for the queued operations, then destroys the stream. Returns a failure that no call has returned yet. */
NPUSHMEM_API int npushmemx_stream_destroy(npushmemx_stream_t stream);
/* Waits for the queued operations; returns the first failure since the last call, 0 if there was none. */
NPUSHMEM_API int npushmemx_stream_synchronize(npushmemx_stream_t stream);
/* The same for all streams of this PE's device. */
NPUSHMEM_API int npushmemx_device_synchronize(void);

/* As memcpy and memset, on any memory of this process. */
NPUSHMEM_API int npushmemx_memcpy_on_stream(void* dest, const void* source, size_t bytes, npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_memset_on_stream(void* dest, int value, size_t bytes, npushmemx_stream_t stream);

/* Collective over the team: quiet, then a barrier of all members. */
NPUSHMEM_API int npushmemx_barrier_on_stream(npushmem_team_t team, npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_barrier_all_on_stream(npushmemx_stream_t stream);
/* As npushmem_team_sync and npushmem_sync_all. */
NPUSHMEM_API int npushmemx_team_sync_on_stream(npushmem_team_t team, npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_sync_all_on_stream(npushmemx_stream_t stream);
/* As npushmem_quiet: completes all operations of this PE on the default context, also those that were not queued. */
NPUSHMEM_API int npushmemx_quiet_on_stream(npushmemx_stream_t stream);
/* As npushmemx_flush: the sources of this PE's earlier puts may be changed when the next operation begins. */
NPUSHMEM_API int npushmemx_flush_on_stream(npushmemx_stream_t stream);

/* As npushmem_putmem and the other plain functions; a put is complete at its target when the next operation begins. */
NPUSHMEM_API int npushmemx_putmem_on_stream(void* dest, const void* source, size_t bytes, int pe,
                                            npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_getmem_on_stream(void* dest, const void* source, size_t bytes, int pe,
                                            npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_putmem_signal_on_stream(void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                                                   uint64_t signal, int sig_op, int pe, npushmemx_stream_t stream);
/* The same as putmem and getmem: every transfer is complete when the next operation begins. */
NPUSHMEM_API int npushmemx_putmem_nbi_on_stream(void* dest, const void* source, size_t bytes, int pe,
                                                npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_getmem_nbi_on_stream(void* dest, const void* source, size_t bytes, int pe,
                                                npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_putmem_signal_nbi_on_stream(void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                                                       uint64_t signal, int sig_op, int pe, npushmemx_stream_t stream);
/* As npushmemx_signal_op. */
NPUSHMEM_API int npushmemx_signal_op_on_stream(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,
                                               npushmemx_stream_t stream);
/* comparison: NPUSHMEM_CMP_x. */
NPUSHMEM_API int npushmemx_signal_wait_until_on_stream(uint64_t* sig_addr, int comparison, uint64_t value,
                                                       npushmemx_stream_t stream);

/* Collective over the team; `bytes` as the plain functions count them. */
NPUSHMEM_API int npushmemx_broadcastmem_on_stream(npushmem_team_t team, void* dest, const void* source, size_t bytes,
                                                  int root, npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_collectmem_on_stream(npushmem_team_t team, void* dest, const void* source, size_t bytes,
                                                npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_fcollectmem_on_stream(npushmem_team_t team, void* dest, const void* source, size_t bytes,
                                                 npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_alltoallmem_on_stream(npushmem_team_t team, void* dest, const void* source, size_t bytes,
                                                 npushmemx_stream_t stream);

/* The forms for each type and size: npushmem/functions/stream_transfers.h, stream_waits.h and
 * stream_collectives.h. */
#define NPUSHMEM_DECLARE(NAME, RET, ...) NPUSHMEM_API RET npushmemx_##NAME(__VA_ARGS__);
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/stream_waits.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_SIZED(BITS, BYTES, PRE, POST, RET, ARGS, ...) NPUSHMEM_DECLARE(PRE##BITS##POST, RET, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/stream_transfers.h"
#include "npushmem/functions.h"
#define NPUSHMEM_HALF_TYPES
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/stream_collectives.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_HALF_TYPES
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#undef NPUSHMEM_DECLARE

#ifdef __cplusplus
}
#endif

#endif
