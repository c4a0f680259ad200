/* Host operations in the order of a stream of the emulated NPU: npushmemx_*_on_stream. Included by npushmemx.h.
 *
 * Each call queues the operation and returns at once. Operations run on the device's worker, or on a thread that
 * synchronizes. A wait for a signal lets kernels of other streams run meanwhile; barriers and collectives keep the
 * worker until they are over, and count as calls of that thread: no other thread may use the same team at that time.
 * Any thread may call, but not from inside a kernel.
 *
 * Errors: the return value says whether the operation was queued: 0, or a code of npushmem/plugin/abi.h with a report
 * (not initialised, a stream that was closed, a wrong argument that can be seen at once). What goes wrong later is the
 * stream's failure: what is queued behind is not run, and the next npushmemx_stream_synchronize (or
 * Stream::synchronize) returns it; after that the stream takes work again. It is also reported, under the name of the
 * plain function.
 *
 * Ordering: an operation begins when everything queued in the stream before it has ended, kernels included, and what is
 * queued behind waits for it. A put is then complete at its target.
 *
 * Parameters: stream: a stream of this PE's device, NULL for the default one; dest, source: as the plain functions take
 * them, valid until the operation has ended; bytes: how many, of each PE where the operation is collective; pe: whose
 * memory, in the world; sig_addr: a signal word in symmetric memory; signal, sig_op: as npushmem_putmem_signal takes
 * them; comparison: NPUSHMEM_CMP_x; value: what is compared with; team: all its members call; root: the member that
 * has the source. */
#ifndef NPUSHMEM_ON_STREAM_H
#define NPUSHMEM_ON_STREAM_H

#include "npushmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stream of this PE's device; NULL is the default one. In C++ the address of an npushmem::npu::Stream of
 * npushmem::npu::device() is one, too: npushmem/npu/on_stream.hpp. */
typedef struct npushmemx_stream_s* npushmemx_stream_t;

/* Makes a stream; *stream receives it. Between init and finalize, before which each must be destroyed. */
NPUSHMEM_API int npushmemx_stream_create(npushmemx_stream_t* stream);
/* Waits for what is queued. A failure that nobody asked for is returned. */
NPUSHMEM_API int npushmemx_stream_destroy(npushmemx_stream_t stream);
/* Waits for what is queued; returns the first failure since the last time, 0 if there was none. */
NPUSHMEM_API int npushmemx_stream_synchronize(npushmemx_stream_t stream);

/* Collective over the team: quiet, and then all members meet. */
NPUSHMEM_API int npushmemx_barrier_on_stream(npushmem_team_t team, npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_barrier_all_on_stream(npushmemx_stream_t stream);

/* npushmem_putmem and so on; a put is complete at its target when the operation behind it begins. */
NPUSHMEM_API int npushmemx_putmem_on_stream(void* dest, const void* source, size_t bytes, int pe,
                                            npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_getmem_on_stream(void* dest, const void* source, size_t bytes, int pe,
                                            npushmemx_stream_t stream);
NPUSHMEM_API int npushmemx_putmem_signal_on_stream(void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                                                   uint64_t signal, int sig_op, int pe, npushmemx_stream_t stream);
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

#ifdef __cplusplus
}
#endif

#endif
