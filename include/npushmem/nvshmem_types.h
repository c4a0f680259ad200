/* SPDX-License-Identifier: BSD-3-Clause */
/* The constants, handles and structures of NVSHMEM 3.6 for host code. Included by npushmem/nvshmem.h.
 *
 * Structures have the members and sizes of NVSHMEM's, as its public headers state them: programs copy them whole. The
 * members named version hold the structure's version and size; npushmem does not read them. */
#ifndef NPUSHMEM_NVSHMEM_TYPES_H
#define NPUSHMEM_NVSHMEM_TYPES_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "npushmem.h"

/* The version of NVSHMEM whose names these are. */
#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 6
#define NVSHMEM_VENDOR_PATCH_VERSION 0
#define NVSHMEM_VENDOR_VERSION \
    ((NVSHMEM_VENDOR_MAJOR_VERSION)*10000 + (NVSHMEM_VENDOR_MINOR_VERSION)*100 + (NVSHMEM_VENDOR_PATCH_VERSION))
#define NVSHMEM_MAJOR_VERSION NPUSHMEM_MAJOR_VERSION
#define NVSHMEM_MINOR_VERSION NPUSHMEM_MINOR_VERSION
#define NVSHMEM_MAX_NAME_LEN 256
#define NVSHMEM_VENDOR_STRING NPUSHMEM_VENDOR_STRING

typedef enum {
    NVSHMEM_THREAD_SINGLE = NPUSHMEM_THREAD_SINGLE,
    NVSHMEM_THREAD_FUNNELED = NPUSHMEM_THREAD_FUNNELED,
    NVSHMEM_THREAD_SERIALIZED = NPUSHMEM_THREAD_SERIALIZED,
    NVSHMEM_THREAD_MULTIPLE = NPUSHMEM_THREAD_MULTIPLE
} nvshmemx_thread_support_t;

typedef enum {
    NVSHMEM_CMP_EQ = NPUSHMEM_CMP_EQ,
    NVSHMEM_CMP_NE = NPUSHMEM_CMP_NE,
    NVSHMEM_CMP_GT = NPUSHMEM_CMP_GT,
    NVSHMEM_CMP_LE = NPUSHMEM_CMP_LE,
    NVSHMEM_CMP_LT = NPUSHMEM_CMP_LT,
    NVSHMEM_CMP_GE = NPUSHMEM_CMP_GE
} nvshmemx_cmp_type_t;

#define NVSHMEM_SIGNAL_SET NPUSHMEM_SIGNAL_OP_SET
#define NVSHMEM_SIGNAL_ADD NPUSHMEM_SIGNAL_OP_ADD

/* For programs that compare with them. Functions return 0 or a code of npushmem/plugin/abi.h, which is negative. */
enum nvshmemx_status {
    NVSHMEMX_SUCCESS = 0,
    NVSHMEMX_ERROR_INVALID_VALUE,
    NVSHMEMX_ERROR_OUT_OF_MEMORY,
    NVSHMEMX_ERROR_NOT_SUPPORTED,
    NVSHMEMX_ERROR_SYMMETRY,
    NVSHMEMX_ERROR_GPU_NOT_SELECTED,
    NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED,
    NVSHMEMX_ERROR_INTERNAL,
    NVSHMEMX_ERROR_SENTINEL = INT_MAX
};

/* Results of nvshmemx_init_status: the first or the third. */
typedef enum {
    NVSHMEM_STATUS_NOT_INITIALIZED = 0,
    NVSHMEM_STATUS_IS_BOOTSTRAPPED,
    NVSHMEM_STATUS_IS_INITIALIZED,
    NVSHMEM_STATUS_LIMITED_MPG,
    NVSHMEM_STATUS_FULL_MPG,
    NVSHMEM_STATUS_INVALID = INT_MAX
} nvshmemx_init_status_t;

/* ---- Teams: the numbers of npushmemx_team_to_index ----------------------------------------------------------------
 */

typedef int32_t nvshmem_team_t;
typedef nvshmem_team_t nvshmemx_team_t;
#define NVSHMEM_TEAM_INVALID (-1)
#define NVSHMEM_TEAM_WORLD 0
#define NVSHMEM_TEAM_SHARED 1
#define NVSHMEMX_TEAM_NODE 2
#define NVSHMEMX_TEAM_SAME_MYPE_NODE 3
#define NVSHMEM_TEAM_WORLD_INDEX NVSHMEM_TEAM_WORLD
#define NVSHMEM_TEAM_SHARED_INDEX NVSHMEM_TEAM_SHARED
#define NVSHMEM_TEAM_NODE_INDEX NVSHMEMX_TEAM_NODE
#define NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX NVSHMEMX_TEAM_SAME_MYPE_NODE
#define NVSHMEM_TEAM_INDEX_MAX INT_MAX

typedef uint64_t nvshmemx_team_uniqueid_t;
#define NVSHMEM_TEAM_UNIQUID_INITIALIZER UINT64_MAX
typedef struct {
    int version;
    int num_contexts;
    char padding[56];
} nvshmem_team_config_v1;
typedef struct {
    int version;
    int num_contexts;
    nvshmemx_team_uniqueid_t uniqueid;
    char padding[48];
} nvshmem_team_config_v2;
typedef nvshmem_team_config_v2 nvshmem_team_config_t;
#define NVSHMEM_TEAM_CONFIG_INITIALIZER                                                        \
    {                                                                                          \
        (2 << 16) + sizeof(nvshmem_team_config_t), -1, NVSHMEM_TEAM_UNIQUID_INITIALIZER, { 0 } \
    }
#define NVSHMEM_TEAM_NUM_CONTEXTS 1L
#define NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS 1L
#define NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID 2L

/* ---- Start --------------------------------------------------------------------------------------------------------
 */

typedef struct {
    int version;
    char internal[124];
} nvshmemx_uniqueid_v1;
typedef nvshmemx_uniqueid_v1 nvshmemx_uniqueid_t;
#define NVSHMEMX_UNIQUEID_INITIALIZER                  \
    {                                                  \
        (1 << 16) + sizeof(nvshmemx_uniqueid_t), { 0 } \
    }

/* id: the address of the program's id, which must exist until the start. */
typedef struct {
    int version;
    nvshmemx_uniqueid_v1* id;
    int myrank;
    int nranks;
} nvshmemx_uniqueid_args_v1;
typedef nvshmemx_uniqueid_args_v1 nvshmemx_uniqueid_args_t;
#define NVSHMEMX_UNIQUEID_ARGS_INITIALIZER \
    { (1 << 16) + sizeof(nvshmemx_uniqueid_args_t), 0, -1, -1 }

/* cuda_device_id: not read. */
typedef struct {
    int version;
    nvshmemx_uniqueid_args_t uid_args;
    char content[96];
} nvshmemx_init_args_v1;
typedef struct {
    int version;
    nvshmemx_uniqueid_args_t uid_args;
    int cuda_device_id;
    char content[92];
} nvshmemx_init_args_v2;
typedef nvshmemx_init_args_v2 nvshmemx_init_args_t;
#define NVSHMEMX_INIT_ARGS_INITIALIZER                                                          \
    {                                                                                           \
        (2 << 16) + sizeof(nvshmemx_init_args_t), NVSHMEMX_UNIQUEID_ARGS_INITIALIZER, -1, { 0 } \
    }

/* mpi_comm: the address of an MPI_Comm, for NVSHMEMX_INIT_WITH_MPI_COMM. */
typedef struct {
    int version;
    void* mpi_comm;
    nvshmemx_init_args_t args;
} nvshmemx_init_attr_v1;
typedef struct {
    int version;
    void* mpi_comm;
    nvshmemx_init_args_t args;
} nvshmemx_init_attr_v2;
typedef nvshmemx_init_attr_v2 nvshmemx_init_attr_t;
#define NVSHMEMX_INIT_ATTR_INITIALIZER \
    { (2 << 16) + sizeof(nvshmemx_init_attr_t), 0, NVSHMEMX_INIT_ARGS_INITIALIZER }

/* How to start; 0: from the environment. A start with NVSHMEMX_INIT_THREAD_PES fails. */
#define NVSHMEMX_INIT_THREAD_PES 1U
#define NVSHMEMX_INIT_WITH_MPI_COMM 2U
#define NVSHMEMX_INIT_WITH_SHMEM 4U
#define NVSHMEMX_INIT_WITH_UNIQUEID 8U

/* Of device code only. */
typedef int nvshmemx_qp_handle_t;

#endif
