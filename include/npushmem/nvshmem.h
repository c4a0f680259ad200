/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of NVSHMEM 3.6 for host code, by npushmem. Programs include <nvshmem.h> or <nvshmemx.h> and link with
 * -lnpushmem. Most functions are functions of npushmem under another name: npushmem/functions/<family>.h documents
 * them. The others convert teams, which are numbers here, and structures, and call a function of npushmem. Reports name
 * the functions of npushmem.
 *
 * Symmetric memory is memory of the host, and streams are those of npushmem/on_stream.h. Puts on a stream are complete
 * at their target when the next operation of the stream begins. Device code fails to compile, with the reason
 * (npushmem/nvshmem_device.h). NPUSHMEM_NO_CUDA_NAMES leaves out the names of CUDA (npushmem/nvshmem_cuda.h), also for
 * files that include CUDA's own headers. */
#ifndef NPUSHMEM_NVSHMEM_H
#define NPUSHMEM_NVSHMEM_H

#if defined(__CUDACC__)
#error "npushmem has no CUDA device code: compile this file as C or C++; npushmem/npu/npu.hpp has a language of kernels"
#elif defined(__DRIVER_TYPES_H__) && !defined(NPUSHMEM_NO_CUDA_NAMES)
#error \
    "npushmem has no CUDA streams: leave out <cuda_runtime.h>, because <nvshmem.h> declares streams of npushmem, or \
define NPUSHMEM_NO_CUDA_NAMES"
#endif

#include <string.h>

#include "npushmem/nvshmem_types.h"
#include "npushmemx.h"
#if !defined(NPUSHMEM_NO_CUDA_NAMES)
#include "npushmem/nvshmem_cuda.h"
#endif

/* Functions that pass numbers of 16 bits have the types that the program sees. In C++20 these are classes whose
 * representation and calling convention are those of the structures. */
#if defined(NPUSHMEM_NO_CUDA_NAMES)
#define NPUSHMEM_NV_FOR_EACH_HALF_TYPE NPUSHMEM_FOR_EACH_HALF_TYPE
#else
#define NPUSHMEM_NV_FOR_EACH_HALF_TYPE(X) X(half, half) X(bfloat16, __nv_bfloat16)
#endif
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Another name for a function of npushmem: the declaration has the symbol of that function. */
#define NPUSHMEM_NV_AS(RET, NAME, SYMBOL, ...) NPUSHMEM_API RET NAME(__VA_ARGS__) __asm__(SYMBOL);
#define NPUSHMEM_NV(RET, NAME, ...) NPUSHMEM_NV_AS(RET, nvshmem_##NAME, "npushmem_" #NAME, __VA_ARGS__)
#define NPUSHMEM_NVX(RET, NAME, ...) NPUSHMEM_NV_AS(RET, nvshmemx_##NAME, "npushmemx_" #NAME, __VA_ARGS__)
/* The team of npushmem that a number names. */
#define NPUSHMEM_NV_TEAM npushmemx_team_from_index

/* ---- Start, queries, memory, teams ------------------------------------------------------------------------------ */

/* A failed start ends the process, except by nvshmemx_hostlib_init_attr, or with NPUSHMEM_ON_ERROR=report. */
static inline int npushmem_nv_start(unsigned int flags, const nvshmemx_init_attr_t* given, int requested, int* provided,
                                    int ends_process) {
    npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
    if ((flags & NVSHMEMX_INIT_WITH_MPI_COMM) != 0 && given != 0) attr.attribute = given->mpi_comm;
    if ((flags & NVSHMEMX_INIT_WITH_UNIQUEID) != 0 && given != 0 && given->args.uid_args.id != 0) {
        attr.rank = given->args.uid_args.myrank;
        attr.nranks = given->args.uid_args.nranks;
        memcpy(&attr.uniqueid, given->args.uid_args.id, sizeof attr.uniqueid);
    }
    return npushmemx_nvshmem_init(flags, &attr, requested, provided, ends_process);
}
static inline void nvshmem_init(void) { npushmem_nv_start(0, 0, NVSHMEM_THREAD_SERIALIZED, 0, 1); }
static inline int nvshmem_init_thread(int requested, int* provided) {
    return npushmem_nv_start(0, 0, requested, provided, 1);
}
/* Of the attributes only those that the flags name are read. */
static inline int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t* attributes) {
    return npushmem_nv_start(flags, attributes, NVSHMEM_THREAD_SERIALIZED, 0, 1);
}
static inline int nvshmemx_hostlib_init_attr(unsigned int flags, nvshmemx_init_attr_t* attr) {
    return npushmem_nv_start(flags, attr, NVSHMEM_THREAD_SERIALIZED, 0, 0);
}
NPUSHMEM_NV(void, query_thread, int* provided)
NPUSHMEM_NV(void, finalize, void)
NPUSHMEM_NV_AS(void, nvshmemx_hostlib_finalize, "npushmem_finalize", void)
NPUSHMEM_API void nvshmem_global_exit(int status) __asm__("npushmem_global_exit") __attribute__((noreturn));
static inline int nvshmemx_init_status(void) {
    int initialized = 0;
    npushmem_query_initialized(&initialized);
    return initialized ? NVSHMEM_STATUS_IS_INITIALIZED : NVSHMEM_STATUS_NOT_INITIALIZED;
}
NPUSHMEM_NV(int, my_pe, void)
NPUSHMEM_NV(int, n_pes, void)
NPUSHMEM_NV(void, info_get_version, int* major, int* minor)
NPUSHMEM_NV(void, info_get_name, char* name)
/* The version of NVSHMEM whose names these are. */
static inline void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
    if (major != 0) *major = NVSHMEM_VENDOR_MAJOR_VERSION;
    if (minor != 0) *minor = NVSHMEM_VENDOR_MINOR_VERSION;
    if (patch != 0) *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}

/* An id fills the whole structure, its version too. */
static inline int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t* uniqueid) {
    npushmemx_uniqueid_t own;
    const int code = npushmemx_get_uniqueid(uniqueid != 0 ? &own : 0);
    if (code == 0) memcpy(uniqueid, &own, sizeof own);
    return code;
}
/* Keeps the address of the id, which init_attr reads. */
static inline int nvshmemx_set_attr_uniqueid_args(const int myrank, const int nranks,
                                                  const nvshmemx_uniqueid_t* uniqueid, nvshmemx_init_attr_t* attr) {
    attr->args.uid_args.id = (nvshmemx_uniqueid_t*)uniqueid;
    attr->args.uid_args.myrank = myrank;
    attr->args.uid_args.nranks = nranks;
    return NVSHMEMX_SUCCESS;
}
static inline int nvshmemx_set_attr_mpi_comm_args(void* mpi_comm, nvshmemx_init_attr_t* attr) {
    attr->mpi_comm = mpi_comm;
    return NVSHMEMX_SUCCESS;
}

NPUSHMEM_NV(void*, malloc, size_t size)
NPUSHMEM_NV(void*, calloc, size_t count, size_t size)
NPUSHMEM_NV(void*, align, size_t alignment, size_t size)
NPUSHMEM_NV(void, free, void* ptr)
NPUSHMEM_NV(void*, ptr, const void* dest, int pe)
/* NULL: there is no multicast. */
static inline void* nvshmemx_mc_ptr(nvshmem_team_t team, const void* ptr) {
    (void)team;
    (void)ptr;
    return 0;
}
NPUSHMEM_NVX(void*, buffer_register_symmetric, void* addr, size_t length, int flags)
NPUSHMEM_NVX(int, buffer_unregister_symmetric, void* addr, size_t length)
NPUSHMEM_NVX(int, buffer_register, void* addr, size_t length)
NPUSHMEM_NVX(int, buffer_unregister, void* addr)
NPUSHMEM_NVX(void, buffer_unregister_all, void)

static inline int nvshmem_team_my_pe(nvshmem_team_t team) { return npushmem_team_my_pe(NPUSHMEM_NV_TEAM(team)); }
static inline int nvshmem_team_n_pes(nvshmem_team_t team) { return npushmem_team_n_pes(NPUSHMEM_NV_TEAM(team)); }
static inline int nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t* config) {
    npushmem_team_config_t own = {0};
    const int code = npushmem_team_get_config(NPUSHMEM_NV_TEAM(team), NPUSHMEM_TEAM_NUM_CONTEXTS, &own);
    if (code == 0 && config != 0) config->num_contexts = own.num_contexts;
    return code;
}
static inline int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team) {
    return npushmem_team_translate_pe(NPUSHMEM_NV_TEAM(src_team), src_pe, NPUSHMEM_NV_TEAM(dest_team));
}
/* The bits of both masks are the same. A negative number of contexts is the initial value: none was given. */
static inline npushmem_team_config_t npushmem_nv_config(const nvshmem_team_config_t* config) {
    npushmem_team_config_t own = {0};
    if (config != 0 && config->num_contexts > 0) own.num_contexts = config->num_contexts;
    return own;
}
static inline void npushmem_nv_put_team(nvshmem_team_t* to, npushmem_team_t team) {
    if (to != 0) *to = npushmemx_team_to_index(team);
}
static inline int nvshmem_team_split_strided(nvshmem_team_t parent_team, int start, int stride, int size,
                                             const nvshmem_team_config_t* config, long config_mask,
                                             nvshmem_team_t* new_team) {
    const npushmem_team_config_t own = npushmem_nv_config(config);
    npushmem_team_t made = NPUSHMEM_TEAM_INVALID;
    const int code =
        npushmem_team_split_strided(NPUSHMEM_NV_TEAM(parent_team), start, stride, size, config != 0 ? &own : 0,
                                    config_mask & NPUSHMEM_TEAM_NUM_CONTEXTS, new_team != 0 ? &made : 0);
    npushmem_nv_put_team(new_team, made);
    return code;
}
static inline int nvshmem_team_split_2d(nvshmem_team_t parent_team, int xrange,
                                        const nvshmem_team_config_t* xaxis_config, long xaxis_mask,
                                        nvshmem_team_t* xaxis_team, const nvshmem_team_config_t* yaxis_config,
                                        long yaxis_mask, nvshmem_team_t* yaxis_team) {
    const npushmem_team_config_t x = npushmem_nv_config(xaxis_config);
    const npushmem_team_config_t y = npushmem_nv_config(yaxis_config);
    npushmem_team_t row = NPUSHMEM_TEAM_INVALID;
    npushmem_team_t column = NPUSHMEM_TEAM_INVALID;
    const int code = npushmem_team_split_2d(NPUSHMEM_NV_TEAM(parent_team), xrange, xaxis_config != 0 ? &x : 0,
                                            xaxis_mask & NPUSHMEM_TEAM_NUM_CONTEXTS, xaxis_team != 0 ? &row : 0,
                                            yaxis_config != 0 ? &y : 0, yaxis_mask & NPUSHMEM_TEAM_NUM_CONTEXTS,
                                            yaxis_team != 0 ? &column : 0);
    npushmem_nv_put_team(xaxis_team, row);
    npushmem_nv_put_team(yaxis_team, column);
    return code;
}
static inline void nvshmem_team_destroy(nvshmem_team_t team) { npushmem_team_destroy(NPUSHMEM_NV_TEAM(team)); }
NPUSHMEM_NVX(int, team_get_uniqueid, nvshmemx_team_uniqueid_t* uniqueid)
static inline int nvshmemx_team_init(nvshmem_team_t* team, nvshmem_team_config_t* config, long config_mask, int npes,
                                     int pe_idx_in_team) {
    npushmemx_team_config_t own = {0, 0};
    npushmem_team_t made = NPUSHMEM_TEAM_INVALID;
    if (config != 0) {
        own.num_contexts = npushmem_nv_config(config).num_contexts;
        own.uniqueid = config->uniqueid;
    }
    const int code =
        npushmemx_team_init(team != 0 ? &made : 0, config != 0 ? &own : 0, config_mask, npes, pe_idx_in_team);
    npushmem_nv_put_team(team, made);
    return code;
}

/* ---- Ordering and synchronisation ------------------------------------------------------------------------------- */

NPUSHMEM_NV(void, fence, void)
NPUSHMEM_NV(void, quiet, void)
NPUSHMEM_NVX(void, quiet_on_stream, npushmemx_stream_t stream)
NPUSHMEM_NVX(void, flush, void)
NPUSHMEM_NVX(void, flush_on_stream, npushmemx_stream_t stream)
NPUSHMEM_NV(void, barrier_all, void)
NPUSHMEM_NVX(void, barrier_all_on_stream, npushmemx_stream_t stream)
NPUSHMEM_NV(void, sync_all, void)
NPUSHMEM_NVX(void, sync_all_on_stream, npushmemx_stream_t stream)
static inline int nvshmem_barrier(nvshmem_team_t team) { return npushmemx_team_barrier(NPUSHMEM_NV_TEAM(team)); }
static inline int nvshmemx_barrier_on_stream(nvshmem_team_t team, npushmemx_stream_t stream) {
    return npushmemx_barrier_on_stream(NPUSHMEM_NV_TEAM(team), stream);
}
static inline int nvshmem_team_sync(nvshmem_team_t team) { return npushmem_team_sync(NPUSHMEM_NV_TEAM(team)); }
static inline int nvshmem_sync(nvshmem_team_t team) { return nvshmem_team_sync(team); }
static inline int nvshmemx_team_sync_on_stream(nvshmem_team_t team, npushmemx_stream_t stream) {
    return npushmemx_team_sync_on_stream(NPUSHMEM_NV_TEAM(team), stream);
}
static inline int nvshmemx_sync_on_stream(nvshmem_team_t team, npushmemx_stream_t stream) {
    return nvshmemx_team_sync_on_stream(team, stream);
}
NPUSHMEM_NV(uint64_t, signal_fetch, const uint64_t* sig_addr)
NPUSHMEM_NVX(void, signal_op, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe)
NPUSHMEM_NVX(void, signal_op_on_stream, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,
             npushmemx_stream_t stream)
NPUSHMEM_NVX(void, signal_wait_until_on_stream, uint64_t* sig_addr, int comparison, uint64_t value,
             npushmemx_stream_t stream)
#define NPUSHMEM_NV_WAITS(NAME, TYPE)                                                                          \
    NPUSHMEM_NVX(void, NAME##_wait_until_on_stream, TYPE* object, int comparison, TYPE value,                  \
                 npushmemx_stream_t stream)                                                                    \
    NPUSHMEM_NVX(void, NAME##_wait_until_all_on_stream, TYPE* objects, size_t count, const int* status,        \
                 int comparison, TYPE value, npushmemx_stream_t stream)                                        \
    NPUSHMEM_NVX(void, NAME##_wait_until_all_vector_on_stream, TYPE* objects, size_t count, const int* status, \
                 int comparison, TYPE* values, npushmemx_stream_t stream)                                      \
    static inline void nvshmemx_##NAME##_wait_on_stream(TYPE* object, TYPE value, npushmemx_stream_t stream) { \
        nvshmemx_##NAME##_wait_until_on_stream(object, NVSHMEM_CMP_NE, value, stream);                         \
    }
NPUSHMEM_FOR_EACH_ATOMIC_TYPE(NPUSHMEM_NV_WAITS)
NPUSHMEM_FOR_EACH_OLD_WAIT_UNTIL_TYPE(NPUSHMEM_NV_WAITS)
#undef NPUSHMEM_NV_WAITS

/* ---- Put and get: P is the prefix of npushmem's function -------------------------------------------------------- */

#define NPUSHMEM_NV_TYPED(RET, P, NAME, ...) NPUSHMEM_NV_AS(RET, nvshmem_##NAME, P #NAME, __VA_ARGS__)
/* Both forms; on a stream all return nothing. */
#define NPUSHMEM_NV_TRANSFER(P, NAME, ...)        \
    NPUSHMEM_NV_TYPED(void, P, NAME, __VA_ARGS__) \
    NPUSHMEM_NVX(void, NAME##_on_stream, __VA_ARGS__, npushmemx_stream_t stream)
#define NPUSHMEM_NV_CONTIGUOUS(P, PRE, POST, TYPE)                                                                     \
    NPUSHMEM_NV_TRANSFER(P, PRE##put##POST, TYPE* dest, const TYPE* source, size_t count, int pe)                      \
    NPUSHMEM_NV_TRANSFER(P, PRE##get##POST, TYPE* dest, const TYPE* source, size_t count, int pe)                      \
    NPUSHMEM_NV_TRANSFER(P, PRE##put##POST##_nbi, TYPE* dest, const TYPE* source, size_t count, int pe)                \
    NPUSHMEM_NV_TRANSFER(P, PRE##get##POST##_nbi, TYPE* dest, const TYPE* source, size_t count, int pe)                \
    NPUSHMEM_NV_TRANSFER(P, PRE##put##POST##_signal, TYPE* dest, const TYPE* source, size_t count, uint64_t* sig_addr, \
                         uint64_t signal, int sig_op, int pe)                                                          \
    NPUSHMEM_NV_TRANSFER(P, PRE##put##POST##_signal_nbi, TYPE* dest, const TYPE* source, size_t count,                 \
                         uint64_t* sig_addr, uint64_t signal, int sig_op, int pe)
#define NPUSHMEM_NV_STRIDED(P, PRE, POST, TYPE)                                                            \
    NPUSHMEM_NV_TRANSFER(P, PRE##iput##POST, TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, \
                         size_t count, int pe)                                                             \
    NPUSHMEM_NV_TRANSFER(P, PRE##iget##POST, TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, \
                         size_t count, int pe)
#define NPUSHMEM_NV_TRANSFERS(P, NAME, TYPE)                                                      \
    NPUSHMEM_NV_TRANSFER(P, NAME##_p, TYPE* dest, TYPE value, int pe)                             \
    NPUSHMEM_NV_TYPED(TYPE, P, NAME##_g, const TYPE* source, int pe)                              \
    NPUSHMEM_NVX(TYPE, NAME##_g_on_stream, const TYPE* source, int pe, npushmemx_stream_t stream) \
    NPUSHMEM_NV_CONTIGUOUS(P, NAME##_, , TYPE)                                                    \
    NPUSHMEM_NV_STRIDED(P, NAME##_, , TYPE)
#define NPUSHMEM_NV_X(NAME, TYPE) NPUSHMEM_NV_TRANSFERS("npushmem_", NAME, TYPE)
NPUSHMEM_FOR_EACH_COMMON_RMA_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_X(NAME, TYPE) NPUSHMEM_NV_TRANSFERS("npushmemx_", NAME, TYPE)
NPUSHMEM_NV_FOR_EACH_HALF_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_X(BITS, BYTES)                    \
    NPUSHMEM_NV_CONTIGUOUS("npushmem_", , BITS, void) \
    NPUSHMEM_NV_STRIDED("npushmem_", , BITS, void)
NPUSHMEM_FOR_EACH_SIZE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
NPUSHMEM_NV_CONTIGUOUS("npushmem_", , mem, void)

/* ---- Collectives ------------------------------------------------------------------------------------------------ */

/* Both forms; P is the prefix of npushmem's function without a stream, OWN its type of elements. */
#define NPUSHMEM_NV_ARRAYS(P, NAME, TYPE, OWN)                                                                       \
    static inline int nvshmem_##NAME(nvshmem_team_t team, TYPE* dest, const TYPE* source, size_t count) {            \
        return P##NAME(NPUSHMEM_NV_TEAM(team), (OWN*)dest, (const OWN*)source, count);                               \
    }                                                                                                                \
    static inline int nvshmemx_##NAME##_on_stream(nvshmem_team_t team, TYPE* dest, const TYPE* source, size_t count, \
                                                  npushmemx_stream_t stream) {                                       \
        return npushmemx_##NAME##_on_stream(NPUSHMEM_NV_TEAM(team), (OWN*)dest, (const OWN*)source, count, stream);  \
    }
#define NPUSHMEM_NV_BROADCAST(P, NAME, TYPE, OWN)                                                                    \
    static inline int nvshmem_##NAME(nvshmem_team_t team, TYPE* dest, const TYPE* source, size_t count, int root) {  \
        return P##NAME(NPUSHMEM_NV_TEAM(team), (OWN*)dest, (const OWN*)source, count, root);                         \
    }                                                                                                                \
    static inline int nvshmemx_##NAME##_on_stream(nvshmem_team_t team, TYPE* dest, const TYPE* source, size_t count, \
                                                  int root, npushmemx_stream_t stream) {                             \
        return npushmemx_##NAME##_on_stream(NPUSHMEM_NV_TEAM(team), (OWN*)dest, (const OWN*)source, count, root,     \
                                            stream);                                                                 \
    }
#define NPUSHMEM_NV_COLLECTIVES(P, PRE, POST, TYPE, OWN)      \
    NPUSHMEM_NV_BROADCAST(P, PRE##broadcast##POST, TYPE, OWN) \
    NPUSHMEM_NV_ARRAYS(P, PRE##fcollect##POST, TYPE, OWN)     \
    NPUSHMEM_NV_ARRAYS(P, PRE##alltoall##POST, TYPE, OWN)
#define NPUSHMEM_NV_REDUCTION(P, NAME, TYPE, OWN)   \
    NPUSHMEM_NV_ARRAYS(P, NAME##_reduce, TYPE, OWN) \
    NPUSHMEM_NV_ARRAYS(npushmemx_, NAME##_reducescatter, TYPE, OWN)
#define NPUSHMEM_NV_REDUCTIONS(P, NAME, TYPE, OWN)   \
    NPUSHMEM_NV_COLLECTIVES(P, NAME##_, , TYPE, OWN) \
    NPUSHMEM_NV_REDUCTION(P, NAME##_max, TYPE, OWN)  \
    NPUSHMEM_NV_REDUCTION(P, NAME##_min, TYPE, OWN)  \
    NPUSHMEM_NV_REDUCTION(P, NAME##_sum, TYPE, OWN)  \
    NPUSHMEM_NV_REDUCTION(P, NAME##_prod, TYPE, OWN)
#define NPUSHMEM_NV_X(NAME, TYPE) NPUSHMEM_NV_REDUCTIONS(npushmem_, NAME, TYPE, TYPE)
NPUSHMEM_FOR_EACH_COMMON_RMA_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_X(NAME, TYPE) NPUSHMEM_NV_REDUCTIONS(npushmemx_, NAME, TYPE, npushmemx_##NAME##_t)
NPUSHMEM_NV_FOR_EACH_HALF_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_X(NAME, TYPE)                            \
    NPUSHMEM_NV_REDUCTION(npushmem_, NAME##_and, TYPE, TYPE) \
    NPUSHMEM_NV_REDUCTION(npushmem_, NAME##_or, TYPE, TYPE)  \
    NPUSHMEM_NV_REDUCTION(npushmem_, NAME##_xor, TYPE, TYPE)
NPUSHMEM_FOR_EACH_BITWISE_REDUCTION_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
NPUSHMEM_NV_COLLECTIVES(npushmem_, , mem, void, void)

#undef NPUSHMEM_NV_AS
#undef NPUSHMEM_NV
#undef NPUSHMEM_NVX
#undef NPUSHMEM_NV_TEAM
#undef NPUSHMEM_NV_TYPED
#undef NPUSHMEM_NV_TRANSFER
#undef NPUSHMEM_NV_CONTIGUOUS
#undef NPUSHMEM_NV_STRIDED
#undef NPUSHMEM_NV_TRANSFERS
#undef NPUSHMEM_NV_ARRAYS
#undef NPUSHMEM_NV_BROADCAST
#undef NPUSHMEM_NV_COLLECTIVES
#undef NPUSHMEM_NV_REDUCTION
#undef NPUSHMEM_NV_REDUCTIONS

#undef NPUSHMEM_NV_FOR_EACH_HALF_TYPE

#ifdef __cplusplus
}
#endif
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

#include "npushmem/nvshmem_device.h"

#endif
