/* SPDX-License-Identifier: BSD-3-Clause */
/* Several worlds in one process; part of <npushmemx.h>.
 *
 * A world is one PE of one job, with its own PEs, symmetric heap, teams, contexts, transports and statistics. The
 * default world is the one of npushmem_init; a process may make others before, while and after that runs:
 *
 *     npushmemx_world_attr_t attr = NPUSHMEMX_WORLD_ATTR_INITIALIZER;
 *     const char* const settings[] = {"NPUSHMEM_TRANSPORTS=self,libfabric", NULL};
 *     attr.settings = settings;
 *     npushmemx_set_attr_uniqueid_args(rank, nranks, &id, &attr.init);   // the id is not that of another world
 *     npushmemx_world_t world;
 *     npushmemx_world_create(&attr, &world);
 *     npushmemx_world_t before;
 *     npushmemx_world_make_current(world, &before);
 *     long* counter = npushmem_calloc(1, sizeof *counter);
 *     npushmem_long_atomic_inc(counter, 0);
 *     npushmem_barrier_all();
 *     npushmemx_world_make_current(before, NULL);
 *     npushmemx_world_destroy(world);
 *
 * World of a call: a function with a context acts on the context's world. Every other function acts on the current
 * world of its thread, which is the default world in a new thread; operations that are queued in a stream, and
 * mixture-of-experts layers, act on the world that was current when they were queued or created. NPUSHMEM_TEAM_WORLD
 * and the other predefined teams are those of the current world. A team that the program has made can be used only
 * while its world is current. A thread that passes an object of the default world's heap while another world is
 * current makes an error, which only NPUSHMEM_CHECK=1 detects: data operations then act on the default world.
 *
 * A stream belongs to the world that was current when it was first used; while another one is current, its calls fail
 * (NPUSHMEM_E_ARGUMENT), except npushmemx_stream_destroy. So does the registration of memory as a buffer that is
 * symmetric in another world.
 *
 * A world that the program makes has no symmetric variables of the executable, so symmetric are only objects from its
 * npushmem_malloc and related functions. In other respects it is as the default one. Data functions with a context
 * are as fast as in the default world. Those without one are tens of nanoseconds slower than with
 * npushmemx_world_context; the default world is as fast as in a process without others.
 *
 * Several worlds of one process may be PEs of the same job. A PE counts as dead when its process has ended, or when its
 * world has ended; the end of a thread ends no PE.
 *
 * Parameters: attr: made by NPUSHMEMX_WORLD_ATTR_INITIALIZER; world: NULL is the default world.
 *
 * Errors: the functions return 0 or a code of npushmem/plugin/abi.h, with a report: a null pointer, a world that does
 * not exist or has been destroyed, a wrong attribute (NPUSHMEM_E_ARGUMENT; NPUSHMEM_E_UNSUPPORTED for a member of a
 * later version that is not zero); world_create also the failures of a start.
 *
 * Ordering: operations of different worlds are not ordered with respect to each other. world_create orders as
 * npushmem_init, world_destroy as npushmem_finalize; the others order nothing. */
#ifndef NPUSHMEM_WORLDS_H
#define NPUSHMEM_WORLDS_H

#include <stdint.h>

#include "npushmemx.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct npushmemx_world_s* npushmemx_world_t;

struct npushmem_transport_v1;   /* npushmem/plugin/transport.h */
struct npushmem_bootstrap_v1;   /* npushmem/plugin/bootstrap.h */
struct npushmem_collectives_v1; /* npushmem/plugin/collectives.h */

/* The lists end with NULL; a null pointer is an empty list. All must live until world_create returns, tables of plugins
 * until the world has ended. */
typedef struct npushmemx_world_attr_s {
    uint32_t struct_size; /* of this structure; later versions append members */
    uint32_t reserved;    /* 0 */
    /* Rank, number of ranks and unique id, from npushmemx_set_attr_uniqueid_args. */
    npushmemx_init_attr_t init;
    /* "NPUSHMEM_NAME=value": for this world instead of the value in the environment. */
    const char* const* settings;
    /* Plugins in the program, as their entry functions return them. NPUSHMEM_TRANSPORTS selects them by their names, as
     * if they were files. */
    const struct npushmem_transport_v1* const* transports;
    /* A plugin in the program that is used instead of `uid`; it receives rank, number of ranks and unique id. */
    const struct npushmem_bootstrap_v1* bootstrap;
    /* Libraries of collectives in the program, which NPUSHMEM_COLL_LIBRARY selects. */
    const struct npushmem_collectives_v1* const* collectives;
} npushmemx_world_attr_t;

#define NPUSHMEMX_WORLD_ATTR_INITIALIZER \
    { sizeof(npushmemx_world_attr_t), 0, NPUSHMEMX_INIT_ATTR_INITIALIZER, 0, 0, 0, 0 }

/* Collective over the ranks, as npushmemx_init_attr. *world receives the handle, or NULL after a failure. Does not
 * change the thread's current world. Any threads, also several at the same time for different worlds. */
NPUSHMEM_API int npushmemx_world_create(const npushmemx_world_attr_t* attr, npushmemx_world_t* world);

/* Collective over the world's PEs, as npushmem_finalize. No thread is in a call on the world. The world is gone also
 * after a failure. If it is the current world of this thread, the default world becomes that; in another thread whose
 * current world it is, calls fail until the thread makes another one current. Any thread, worlds in any order. */
NPUSHMEM_API int npushmemx_world_destroy(npushmemx_world_t world);

/* As world_destroy, but local: completes nothing and waits for no other PE. For these this PE is dead. */
NPUSHMEM_API int npushmemx_world_abort(npushmemx_world_t world);

/* Makes the world the calling thread's current one. *before (may be NULL) receives the one that it replaces. The
 * default world may be made current while it does not run. npushmem_init and npushmem_finalize in a thread whose
 * current world is not the default one count further starts of that world, and do not end it. */
NPUSHMEM_API int npushmemx_world_make_current(npushmemx_world_t world, npushmemx_world_t* before);

/* *ctx receives the world's default context, NPUSHMEM_CTX_DEFAULT for the default world. Valid until the world ends; it
 * cannot be destroyed otherwise. Any thread. */
NPUSHMEM_API int npushmemx_world_context(npushmemx_world_t world, npushmem_ctx_t* ctx);

#ifdef __cplusplus
}
#endif

#endif
