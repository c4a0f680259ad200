/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of NVSHMEM 3 for host code, by npushmem. Programs include <nvshmem.h> or <nvshmemx.h> and link with
 * -lnpushmem. Each function is one of npushmem under another name: npushmem/functions/<family>.h documents it. Reports
 * name the functions of npushmem.
 *
 * Symmetric memory is memory of the host, and streams are those of npushmem/on_stream.h. Puts on a stream are complete
 * at their target when the next operation of the stream begins. Device code fails to compile, with the reason
 * (npushmem/nvshmem_device.h). NPUSHMEM_NO_CUDA_NAMES leaves out the names of CUDA below. */
#ifndef NPUSHMEM_NVSHMEM_H
#define NPUSHMEM_NVSHMEM_H

#if defined(__CUDACC__)
#error "npushmem has no CUDA device code: compile this file as C or C++; npushmem/npu/npu.hpp has a language of kernels"
#elif defined(__DRIVER_TYPES_H__)
#error "npushmem has no CUDA streams: leave out <cuda_runtime.h>; <nvshmem.h> declares the streams of npushmem"
#endif

#include "npushmemx.h"

/* The version of NVSHMEM whose names these are. */
#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 0
#define NVSHMEM_VENDOR_PATCH_VERSION 0
#define NVSHMEM_MAJOR_VERSION NPUSHMEM_MAJOR_VERSION
#define NVSHMEM_MINOR_VERSION NPUSHMEM_MINOR_VERSION
#define NVSHMEM_MAX_NAME_LEN NPUSHMEM_MAX_NAME_LEN
#define NVSHMEM_VENDOR_STRING NPUSHMEM_VENDOR_STRING

#define NVSHMEM_THREAD_SINGLE NPUSHMEM_THREAD_SINGLE
#define NVSHMEM_THREAD_FUNNELED NPUSHMEM_THREAD_FUNNELED
#define NVSHMEM_THREAD_SERIALIZED NPUSHMEM_THREAD_SERIALIZED
#define NVSHMEM_THREAD_MULTIPLE NPUSHMEM_THREAD_MULTIPLE

#define NVSHMEM_CMP_EQ NPUSHMEM_CMP_EQ
#define NVSHMEM_CMP_NE NPUSHMEM_CMP_NE
#define NVSHMEM_CMP_GT NPUSHMEM_CMP_GT
#define NVSHMEM_CMP_LE NPUSHMEM_CMP_LE
#define NVSHMEM_CMP_LT NPUSHMEM_CMP_LT
#define NVSHMEM_CMP_GE NPUSHMEM_CMP_GE

#define NVSHMEM_SIGNAL_SET NPUSHMEM_SIGNAL_OP_SET
#define NVSHMEM_SIGNAL_ADD NPUSHMEM_SIGNAL_OP_ADD

/* Results of nvshmemx_init_status. The library is never in one of the others. */
#define NVSHMEM_STATUS_NOT_INITIALIZED 0
#define NVSHMEM_STATUS_IS_BOOTSTRAPPED 1
#define NVSHMEM_STATUS_IS_INITIALIZED 2
#define NVSHMEM_STATUS_LIMITED_MPG 3
#define NVSHMEM_STATUS_FULL_MPG 4

typedef npushmem_team_t nvshmem_team_t;
typedef npushmemx_team_config_t nvshmem_team_config_t;
typedef npushmemx_team_uniqueid_t nvshmemx_team_uniqueid_t;
#define NVSHMEM_TEAM_INVALID NPUSHMEM_TEAM_INVALID
#define NVSHMEM_TEAM_WORLD NPUSHMEM_TEAM_WORLD
#define NVSHMEM_TEAM_SHARED NPUSHMEM_TEAM_SHARED
#define NVSHMEMX_TEAM_NODE NPUSHMEMX_TEAM_NODE
#define NVSHMEMX_TEAM_SAME_MYPE_NODE NPUSHMEMX_TEAM_SAME_MYPE_NODE
#define NVSHMEM_TEAM_NUM_CONTEXTS NPUSHMEM_TEAM_NUM_CONTEXTS
#define NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS NPUSHMEM_TEAM_NUM_CONTEXTS
#define NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID NPUSHMEMX_TEAM_UNIQUEID
#define NVSHMEM_TEAM_CONFIG_INITIALIZER \
    { 0, 0 }

typedef npushmemx_uniqueid_t nvshmemx_uniqueid_t;
#define NVSHMEMX_UNIQUEID_INITIALIZER \
    {                                 \
        { 0 }                         \
    }

#define NVSHMEMX_INIT_WITH_UNIQUEID NPUSHMEMX_INIT_WITH_UNIQUEID
#define NVSHMEMX_INIT_WITH_MPI_COMM NPUSHMEMX_INIT_WITH_MPI_COMM
#define NVSHMEMX_INIT_WITH_SHMEM NPUSHMEMX_INIT_WITH_SHMEM
/* mpi_comm: the address of an MPI_Comm, for NVSHMEMX_INIT_WITH_MPI_COMM. */
typedef struct nvshmemx_init_attr_s {
    int version;
    void* mpi_comm;
    struct {
        struct {
            int version;
            nvshmemx_uniqueid_t id;
            int myrank;
            int nranks;
        } uid_args;
    } args;
} nvshmemx_init_attr_t;
#define NVSHMEMX_INIT_ATTR_INITIALIZER \
    {                                  \
        3, 0, {                        \
            { 3, {{0}}, -1, -1 }       \
        }                              \
    }

/* What NVSHMEM programs use of CUDA for streams and 16-bit numbers. */
#if !defined(NPUSHMEM_NO_CUDA_NAMES)
typedef npushmemx_stream_t cudaStream_t;
typedef int cudaError_t;
#define cudaSuccess 0
typedef npushmemx_half_t half;
typedef npushmemx_half_t __half;
typedef npushmemx_bfloat16_t __nv_bfloat16;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Another name for a function of npushmem: the declaration has the symbol of that function. */
#define NPUSHMEM_NV_AS(RET, NAME, SYMBOL, ...) NPUSHMEM_API RET NAME(__VA_ARGS__) __asm__(SYMBOL);
#define NPUSHMEM_NV(RET, NAME, ...) NPUSHMEM_NV_AS(RET, nvshmem_##NAME, "npushmem_" #NAME, __VA_ARGS__)
#define NPUSHMEM_NVX(RET, NAME, ...) NPUSHMEM_NV_AS(RET, nvshmemx_##NAME, "npushmemx_" #NAME, __VA_ARGS__)

#if !defined(NPUSHMEM_NO_CUDA_NAMES)
NPUSHMEM_NV_AS(cudaError_t, cudaStreamCreate, "npushmemx_stream_create", cudaStream_t* stream)
NPUSHMEM_NV_AS(cudaError_t, cudaStreamDestroy, "npushmemx_stream_destroy", cudaStream_t stream)
NPUSHMEM_NV_AS(cudaError_t, cudaStreamSynchronize, "npushmemx_stream_synchronize", cudaStream_t stream)
#endif

/* ---- Start, queries, memory, teams ------------------------------------------------------------------------------ */

static inline void nvshmem_init(void) { npushmem_init(); }
static inline int nvshmem_init_thread(int requested, int* provided) {
    return npushmem_init_thread(requested, provided);
}
NPUSHMEM_NV(void, query_thread, int* provided)
NPUSHMEM_NV(void, finalize, void)
NPUSHMEM_API void nvshmem_global_exit(int status) __asm__("npushmem_global_exit") __attribute__((noreturn));
NPUSHMEM_NV(int, my_pe, void)
NPUSHMEM_NV(int, n_pes, void)
NPUSHMEM_NV(void, info_get_version, int* major, int* minor)
NPUSHMEM_NV(void, info_get_name, char* name)
NPUSHMEM_NVX(void, vendor_get_version_info, int* major, int* minor, int* patch)
NPUSHMEM_NVX(int, get_uniqueid, nvshmemx_uniqueid_t* uniqueid)

static inline int nvshmemx_set_attr_uniqueid_args(const int myrank, const int nranks,
                                                  const nvshmemx_uniqueid_t* uniqueid, nvshmemx_init_attr_t* attr) {
    attr->args.uid_args.id = *uniqueid;
    attr->args.uid_args.myrank = myrank;
    attr->args.uid_args.nranks = nranks;
    return 0;
}
static inline int nvshmemx_set_attr_mpi_comm_args(void* mpi_comm, nvshmemx_init_attr_t* attr) {
    attr->mpi_comm = mpi_comm;
    return 0;
}
/* Of the attributes only those that the flags name are read. */
static inline int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t* attributes) {
    npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
    if (attributes != 0 && flags == NVSHMEMX_INIT_WITH_MPI_COMM) attr.attribute = attributes->mpi_comm;
    if (attributes != 0 && flags == NVSHMEMX_INIT_WITH_UNIQUEID &&
        npushmemx_set_attr_uniqueid_args(attributes->args.uid_args.myrank, attributes->args.uid_args.nranks,
                                         &attributes->args.uid_args.id, &attr) != 0)
        return npushmemx_last_error(0);
    return npushmemx_init_attr(flags, &attr);
}
static inline int nvshmemx_hostlib_init_attr(unsigned int flags, nvshmemx_init_attr_t* attr) {
    return nvshmemx_init_attr(flags, attr);
}
NPUSHMEM_NV_AS(void, nvshmemx_hostlib_finalize, "npushmem_finalize", void)
static inline int nvshmemx_init_status(void) {
    int initialized = 0;
    npushmem_query_initialized(&initialized);
    return initialized ? NVSHMEM_STATUS_IS_INITIALIZED : NVSHMEM_STATUS_NOT_INITIALIZED;
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

NPUSHMEM_NV(int, team_my_pe, nvshmem_team_t team)
NPUSHMEM_NV(int, team_n_pes, nvshmem_team_t team)
static inline int nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t* config) {
    npushmem_team_config_t own = {0};
    const int code = npushmem_team_get_config(team, NPUSHMEM_TEAM_NUM_CONTEXTS, &own);
    if (code == 0 && config != 0) config->num_contexts = own.num_contexts;
    return code;
}
NPUSHMEM_NV(int, team_translate_pe, nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team)
/* The number of contexts is the first member of both types of configurations. */
NPUSHMEM_NV(int, team_split_strided, nvshmem_team_t parent_team, int start, int stride, int size,
            const nvshmem_team_config_t* config, long config_mask, nvshmem_team_t* new_team)
NPUSHMEM_NV(int, team_split_2d, nvshmem_team_t parent_team, int xrange, const nvshmem_team_config_t* xaxis_config,
            long xaxis_mask, nvshmem_team_t* xaxis_team, const nvshmem_team_config_t* yaxis_config, long yaxis_mask,
            nvshmem_team_t* yaxis_team)
NPUSHMEM_NV(void, team_destroy, nvshmem_team_t team)
NPUSHMEM_NVX(int, team_get_uniqueid, nvshmemx_team_uniqueid_t* uniqueid)
NPUSHMEM_NV_AS(int, nvshmemx_team_init, "npushmemx_team_init", nvshmem_team_t* team, nvshmem_team_config_t* config,
               long config_mask, int npes, int pe_idx_in_team)

/* ---- Ordering and synchronisation ------------------------------------------------------------------------------- */

NPUSHMEM_NV(void, fence, void)
NPUSHMEM_NV(void, quiet, void)
NPUSHMEM_NVX(void, quiet_on_stream, npushmemx_stream_t stream)
NPUSHMEM_NVX(void, flush_on_stream, npushmemx_stream_t stream)
NPUSHMEM_NV(void, barrier_all, void)
NPUSHMEM_NVX(void, barrier_all_on_stream, npushmemx_stream_t stream)
NPUSHMEM_NV(void, sync_all, void)
NPUSHMEM_NVX(void, sync_all_on_stream, npushmemx_stream_t stream)
NPUSHMEM_NV_AS(int, nvshmem_barrier, "npushmemx_team_barrier", nvshmem_team_t team)
NPUSHMEM_NVX(int, barrier_on_stream, nvshmem_team_t team, npushmemx_stream_t stream)
NPUSHMEM_NV(int, team_sync, nvshmem_team_t team)
NPUSHMEM_NV_AS(int, nvshmem_sync, "npushmem_team_sync", nvshmem_team_t team)
NPUSHMEM_NVX(int, team_sync_on_stream, nvshmem_team_t team, npushmemx_stream_t stream)
NPUSHMEM_NV_AS(int, nvshmemx_sync_on_stream, "npushmemx_team_sync_on_stream", nvshmem_team_t team,
               npushmemx_stream_t stream)
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
#define NPUSHMEM_NV_TRANSFERS(P, NAME, TYPE)                          \
    NPUSHMEM_NV_TRANSFER(P, NAME##_p, TYPE* dest, TYPE value, int pe) \
    NPUSHMEM_NV_TYPED(TYPE, P, NAME##_g, const TYPE* source, int pe)  \
    NPUSHMEM_NV_CONTIGUOUS(P, NAME##_, , TYPE)                        \
    NPUSHMEM_NV_STRIDED(P, NAME##_, , TYPE)
#define NPUSHMEM_NV_X(NAME, TYPE) NPUSHMEM_NV_TRANSFERS("npushmem_", NAME, TYPE)
NPUSHMEM_FOR_EACH_COMMON_RMA_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_X(NAME, TYPE) NPUSHMEM_NV_TRANSFERS("npushmemx_", NAME, TYPE)
NPUSHMEM_FOR_EACH_HALF_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_X(BITS, BYTES)                    \
    NPUSHMEM_NV_CONTIGUOUS("npushmem_", , BITS, void) \
    NPUSHMEM_NV_STRIDED("npushmem_", , BITS, void)
NPUSHMEM_FOR_EACH_SIZE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
NPUSHMEM_NV_CONTIGUOUS("npushmem_", , mem, void)

/* ---- Collectives ------------------------------------------------------------------------------------------------ */

/* Both forms; P is the prefix of npushmem's function without a stream. */
#define NPUSHMEM_NV_COLLECTIVE(P, NAME, ...)     \
    NPUSHMEM_NV_TYPED(int, P, NAME, __VA_ARGS__) \
    NPUSHMEM_NVX(int, NAME##_on_stream, __VA_ARGS__, npushmemx_stream_t stream)
#define NPUSHMEM_NV_ARRAYS(P, NAME, TYPE) \
    NPUSHMEM_NV_COLLECTIVE(P, NAME, nvshmem_team_t team, TYPE* dest, const TYPE* source, size_t count)
#define NPUSHMEM_NV_COLLECTIVES(P, PRE, POST, TYPE)                                                                    \
    NPUSHMEM_NV_COLLECTIVE(P, PRE##broadcast##POST, nvshmem_team_t team, TYPE* dest, const TYPE* source, size_t count, \
                           int root)                                                                                   \
    NPUSHMEM_NV_ARRAYS(P, PRE##fcollect##POST, TYPE)                                                                   \
    NPUSHMEM_NV_ARRAYS(P, PRE##alltoall##POST, TYPE)
#define NPUSHMEM_NV_REDUCTION(P, NAME, TYPE)   \
    NPUSHMEM_NV_ARRAYS(P, NAME##_reduce, TYPE) \
    NPUSHMEM_NV_ARRAYS("npushmemx_", NAME##_reducescatter, TYPE)
#define NPUSHMEM_NV_REDUCTIONS(P, NAME, TYPE)   \
    NPUSHMEM_NV_COLLECTIVES(P, NAME##_, , TYPE) \
    NPUSHMEM_NV_REDUCTION(P, NAME##_max, TYPE)  \
    NPUSHMEM_NV_REDUCTION(P, NAME##_min, TYPE)  \
    NPUSHMEM_NV_REDUCTION(P, NAME##_sum, TYPE)  \
    NPUSHMEM_NV_REDUCTION(P, NAME##_prod, TYPE)
#define NPUSHMEM_NV_X(NAME, TYPE) NPUSHMEM_NV_REDUCTIONS("npushmem_", NAME, TYPE)
NPUSHMEM_FOR_EACH_COMMON_RMA_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_X(NAME, TYPE) NPUSHMEM_NV_REDUCTIONS("npushmemx_", NAME, TYPE)
NPUSHMEM_FOR_EACH_HALF_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
#define NPUSHMEM_NV_X(NAME, TYPE)                        \
    NPUSHMEM_NV_REDUCTION("npushmem_", NAME##_and, TYPE) \
    NPUSHMEM_NV_REDUCTION("npushmem_", NAME##_or, TYPE)  \
    NPUSHMEM_NV_REDUCTION("npushmem_", NAME##_xor, TYPE)
NPUSHMEM_FOR_EACH_BITWISE_REDUCTION_TYPE(NPUSHMEM_NV_X)
#undef NPUSHMEM_NV_X
NPUSHMEM_NV_COLLECTIVES("npushmem_", , mem, void)

#undef NPUSHMEM_NV_AS
#undef NPUSHMEM_NV
#undef NPUSHMEM_NVX
#undef NPUSHMEM_NV_TYPED
#undef NPUSHMEM_NV_TRANSFER
#undef NPUSHMEM_NV_CONTIGUOUS
#undef NPUSHMEM_NV_STRIDED
#undef NPUSHMEM_NV_TRANSFERS
#undef NPUSHMEM_NV_COLLECTIVE
#undef NPUSHMEM_NV_ARRAYS
#undef NPUSHMEM_NV_COLLECTIVES
#undef NPUSHMEM_NV_REDUCTION
#undef NPUSHMEM_NV_REDUCTIONS

#ifdef __cplusplus
}
#endif

#include "npushmem/nvshmem_device.h"

#endif
