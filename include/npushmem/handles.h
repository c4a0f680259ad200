/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles and structures of the interface; the same under every prefix. */
#ifndef NPUSHMEM_HANDLES_H
#define NPUSHMEM_HANDLES_H

#include <stddef.h>

/* Opaque. The predefined handles are small numbers, so that they are constants and need no symbol. */
typedef struct npushmem_context_s* npushmem_ctx_t;
typedef struct npushmem_team_s* npushmem_team_t;

/* Parameters of a team: the number of contexts that the program expects to make from it at a time. A hint; not a limit.
 */
typedef struct npushmem_team_config_s {
    int num_contexts;
} npushmem_team_config_t;

/* Parameters of a session: the number of operations that the program expects in it. A hint. */
typedef struct npushmem_ctx_session_config_s {
    size_t total_ops;
} npushmem_ctx_session_config_t;

#define NPUSHMEM_CTX_INVALID ((npushmem_ctx_t)0)
#define NPUSHMEM_CTX_DEFAULT ((npushmem_ctx_t)1)
#define NPUSHMEM_TEAM_INVALID ((npushmem_team_t)0)
#define NPUSHMEM_TEAM_WORLD ((npushmem_team_t)1)
#define NPUSHMEM_TEAM_SHARED ((npushmem_team_t)2)

/* Options of contexts; may be combined. */
#define NPUSHMEM_CTX_SERIALIZED 1L
#define NPUSHMEM_CTX_PRIVATE 2L
#define NPUSHMEM_CTX_NOSTORE 4L

/* Which members of npushmem_team_config_t count; options and members of a session. */
#define NPUSHMEM_TEAM_NUM_CONTEXTS 1L
#define NPUSHMEM_CTX_SESSION_BATCH 1L
#define NPUSHMEM_CTX_SESSION_TOTAL_OPS 1L

/* Numbers of elements of pSync and pWrk of the collectives over active sets, and the initial value of pSync. */
#define NPUSHMEM_SYNC_VALUE 0L
#define NPUSHMEM_SYNC_SIZE 16
#define NPUSHMEM_REDUCE_MIN_WRKDATA_SIZE 1

#endif
