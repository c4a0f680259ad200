/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives table: another library's collective operations, which npushmem uses beside its own.
 *
 * A plugin `libnpushmem_collectives_<name>.so` exports NPUSHMEM_COLLECTIVES_ENTRY; NPUSHMEM_COLL_LIBRARY=<name> selects
 * it. Authors in C++ derive from `npushmem::Collectives` (collectives.hpp) and use NPUSHMEM_EXPORT_COLLECTIVES.
 *
 * Agreement: all members of a team must make the same choice between the library and npushmem. So `supports` gives the
 * same answer each time, the host uses what all PEs support, and `start` returns NPUSHMEM_E_UNSUPPORTED only for
 * reasons that are equal on all members: the collective, operation, type, root, count and counts of the call, and the
 * team.
 *
 * Waiting: only `create_team` may wait, and only for members, all of which call it. `start` and `test` never wait: the
 * host waits, so that a dead PE or NPUSHMEM_TIMEOUT ends every call. The library needs no thread of its own: the host
 * calls `test` until the call is complete.
 *
 * Threads: the calls of one team come from one thread at a time, those of different teams from any threads at the same
 * time. `close` comes last.
 *
 * Order: a team has one call in progress on each member, and all members start its calls in the same order. The host
 * orders its stores before `start` and its loads after the completion.
 */
#ifndef NPUSHMEM_PLUGIN_COLLECTIVES_H
#define NPUSHMEM_PLUGIN_COLLECTIVES_H

#include "npushmem/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NPUSHMEM_COLLECTIVES_MAJOR 1
#define NPUSHMEM_COLLECTIVES_MINOR 0
/* In a file of several plugins each plugin defines its entry symbol: npushmem_collectives_entry_v1_<name>. */
#ifndef NPUSHMEM_COLLECTIVES_ENTRY
#define NPUSHMEM_COLLECTIVES_ENTRY npushmem_collectives_entry_v1
#endif
#define NPUSHMEM_COLLECTIVES_ENTRY_NAME "npushmem_collectives_entry_v1"

/* Collectives. */
#define NPUSHMEM_COLL_BARRIER 0       /* no member completes before all have started */
#define NPUSHMEM_COLL_BROADCAST 1     /* the root's source to the dest of all others; the root's dest is not written */
#define NPUSHMEM_COLL_COLLECT 2       /* sources of different sizes to every dest, in the order of members */
#define NPUSHMEM_COLL_FCOLLECT 3      /* the same with equal sizes */
#define NPUSHMEM_COLL_ALLTOALL 4      /* block j of member i's source to block i of member j's dest */
#define NPUSHMEM_COLL_REDUCE 5        /* the sources, element by element, to every dest */
#define NPUSHMEM_COLL_REDUCESCATTER 6 /* block i of all sources, element by element, to member i's dest */

/* Operations of reductions. MAX, MIN, SUM and PROD of floats are NaN if an operand is. SUM and PROD of floats may be
 * combined in any order, so that they are rounded otherwise than npushmem's; but REDUCE gives every member the same
 * bits. `supports` leaves out the types for which an operation differs from
 * this. */
#define NPUSHMEM_COLL_AND 0
#define NPUSHMEM_COLL_OR 1
#define NPUSHMEM_COLL_XOR 2
#define NPUSHMEM_COLL_MAX 3
#define NPUSHMEM_COLL_MIN 4
#define NPUSHMEM_COLL_SUM 5
#define NPUSHMEM_COLL_PROD 6

/* Types of elements of reductions. AND, OR and XOR are of integers; MAX and MIN are not of complex numbers. */
#define NPUSHMEM_COLL_I8 0
#define NPUSHMEM_COLL_I16 1
#define NPUSHMEM_COLL_I32 2
#define NPUSHMEM_COLL_I64 3
#define NPUSHMEM_COLL_U8 4
#define NPUSHMEM_COLL_U16 5
#define NPUSHMEM_COLL_U32 6
#define NPUSHMEM_COLL_U64 7
#define NPUSHMEM_COLL_F16 8
#define NPUSHMEM_COLL_BF16 9
#define NPUSHMEM_COLL_F32 10
#define NPUSHMEM_COLL_F64 11
#define NPUSHMEM_COLL_F80 12 /* long double */
#define NPUSHMEM_COLL_C32 13 /* two F32 */
#define NPUSHMEM_COLL_C64 14 /* two F64 */

typedef struct npushmem_collectives_params {
    uint32_t struct_size;
    int32_t pe; /* of the job */
    int32_t npes;
    uint32_t reserved;
} npushmem_collectives_params;

/* A team, valid during create_team. */
typedef struct npushmem_coll_team {
    uint32_t struct_size;
    int32_t size; /* at least 2 */
    int32_t index;
    uint32_t number;    /* equal on all members; no other team of a member has it meanwhile */
    const int32_t* pes; /* of the job, by member; in any order, without repetitions */
    /* A way to exchange addresses or an id: gathers `bytes` bytes, at most NPUSHMEM_COLL_EXCHANGE_BYTES, from every
     * member, in their order. Every member calls it equally often with the same number of bytes. After a failure, which
     * may be another member's, create_team returns it. */
    void* context;
    int32_t (*allgather)(void* context, const void* send, uint64_t bytes, void* receive, npushmem_error* error);
} npushmem_coll_team;

#define NPUSHMEM_COLL_EXCHANGE_BYTES 1024

/* One collective call; equal on all members but for the addresses and, with COLLECT, `count`. */
typedef struct npushmem_coll_call {
    uint32_t struct_size;
    uint32_t collective; /* NPUSHMEM_COLL_x */
    uint32_t operation;  /* of reductions */
    uint32_t type;       /* of reductions */
    int32_t root;        /* member, of BROADCAST */
    uint32_t reserved;
    /* Readable and writable until the call is complete or abandoned. They do not overlap, except that dest may be
     * source in reductions. In REDUCESCATTER the rest of source stays unchanged then. */
    const void* source;
    void* dest;
    /* Bytes of this member's source, with ALLTOALL for each member; elements of dest in reductions; not 0 except in
     * BARRIER and COLLECT. */
    uint64_t count;
    const uint64_t* counts; /* COLLECT: `count` of each member, of which one is not 0; valid during `start` */
} npushmem_coll_call;

typedef struct npushmem_collectives_v1 {
    uint32_t struct_size;
    uint16_t major;
    uint16_t minor;
    const char* name;
    const char* summary;
    const npushmem_config_row* config;
    uint32_t config_count;
    uint32_t reserved;

    /* mandatory. open: on every PE, before any team exists; waits for no other PE. NPUSHMEM_E_UNSUPPORTED or
     * NPUSHMEM_E_STATE: the library cannot serve this job, and npushmem uses its own collectives, with a warning that
     * contains the message. Another failure ends the start. */
    int32_t (*open)(const npushmem_host* host, const npushmem_collectives_params* params, void** self,
                    npushmem_error* error);
    /* Releases everything that is left; waits for no other PE; never fails. */
    void (*close)(void* self);
    /* For reductions: the set of types, bit NPUSHMEM_COLL_x, of which the library has this operation. For other
     * collectives, with operation 0: 1 or 0. Unknown arguments: 0. */
    uint64_t (*supports)(void* self, uint32_t collective, uint32_t operation);
    /* Collective over the members. *id names the team in later calls. After a failure, which the host reports to the
     * other members, this team uses npushmem's own collectives. */
    int32_t (*create_team)(void* self, const npushmem_coll_team* team, uint64_t* id, npushmem_error* error);
    /* On each member, at different times; waits for no other member. */
    void (*destroy_team)(void* self, uint64_t id);
    /* Begins a call. OK: it is complete; AGAIN: pass *request to `test`; NPUSHMEM_E_UNSUPPORTED: nothing has happened.
     * After another failure the team is only destroyed. */
    int32_t (*start)(void* self, uint64_t team, const npushmem_coll_call* call, uint64_t* request,
                     npushmem_error* error);
    /* Drives the call. OK: it is complete, and source may change; AGAIN: not yet. After another result the request no
     * longer exists. */
    int32_t (*test)(void* self, uint64_t request, npushmem_error* error);

    /* optional. abandon: the call will not be completed, because a member is dead or late. Afterwards the host destroys
     * the team or closes the library; these must not wait for the call. Until then the library may still use the
     * call's memory. */
    void (*abandon)(void* self, uint64_t request);
    /* The library with its version, for reports; equal on all PEs, otherwise the library is not used. Valid until
     * close. */
    const char* (*describe)(void* self);
} npushmem_collectives_v1;

typedef const npushmem_collectives_v1* (*npushmem_collectives_entry)(void);

#ifdef __cplusplus
}
#endif
#endif
