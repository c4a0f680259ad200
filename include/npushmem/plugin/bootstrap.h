/* SPDX-License-Identifier: BSD-3-Clause */
/* The bootstrap table: independent processes become PEs 0..npes-1 that can exchange bytes.
 *
 * A plugin `libnpushmem_bootstrap_<name>.so` exports NPUSHMEM_BOOTSTRAP_ENTRY. Authors in C++ derive from
 * `npushmem::Bootstrap` (bootstrap.hpp) and use NPUSHMEM_EXPORT_BOOTSTRAP, or NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG if
 * the plugin has configuration rows.
 *
 * Threads: one thread at a time calls an instance's collectives; `abort` and `check` may be called by another thread
 * meanwhile.
 *
 * Collectives: every rank calls them in the same order with the same arguments. A rank whose `bytes` differ from the
 * others' fails the job: no rank receives bytes of another collective or of another length. Ranks get
 * NPUSHMEM_E_MISMATCH, or the codes below.
 *
 * Failures: when a rank fails, calls abort, or dies, every other rank's current or next call returns
 * NPUSHMEM_E_ABORTED, NPUSHMEM_E_PEER_DEAD or NPUSHMEM_E_TIMEOUT with the cause; no call waits indefinitely. A job that
 * has failed stays failed: all later collectives and checks of a rank that has seen the failure return an error with
 * the first cause, and do not wait. A rank that has called close after its last collective has not failed: the others
 * get an error only from a collective that needs it.
 */
#ifndef NPUSHMEM_PLUGIN_BOOTSTRAP_H
#define NPUSHMEM_PLUGIN_BOOTSTRAP_H

#include "npushmem/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NPUSHMEM_BOOTSTRAP_MAJOR 1
#define NPUSHMEM_BOOTSTRAP_MINOR 2
/* In a file of several plugins each plugin defines its entry symbol: npushmem_bootstrap_entry_v1_<name>. */
#ifndef NPUSHMEM_BOOTSTRAP_ENTRY
#define NPUSHMEM_BOOTSTRAP_ENTRY npushmem_bootstrap_entry_v1
#endif
#define NPUSHMEM_BOOTSTRAP_ENTRY_NAME "npushmem_bootstrap_entry_v1"

#define NPUSHMEM_UNIQUEID_BYTES 128

/* A bootstrap's confidence that it is the right one for this process. */
#define NPUSHMEM_RECOGNISED_NOTHING 1   /* no sign of any launcher: a job of one process is possible */
#define NPUSHMEM_RECOGNISED_LAUNCHER 40 /* the environment that its launcher sets for a process */
#define NPUSHMEM_RECOGNISED_LIBRARY \
    60 /* its library runs in this process already, and owns the launcher's connection */
#define NPUSHMEM_RECOGNISED_BY_USER 100 /* the program or the user gave an input that only this bootstrap can use */

typedef struct npushmem_bootstrap_params {
    uint32_t struct_size;
    int32_t rank;   /* given by the user, or -1: the plugin determines it */
    int32_t nranks; /* likewise */
    uint32_t reserved;
    const void* uniqueid; /* NPUSHMEM_UNIQUEID_BYTES bytes from get_uniqueid, or NULL */
    const void*
        attribute; /* specific to the plugin, for instance a pointer to a communicator; NULL if none was given */
} npushmem_bootstrap_params;

/* One structure, although it has many members: it is the whole interface of a bootstrap in a binary form, and members
 * are only ever appended. */
typedef struct npushmem_bootstrap_v1 {
    uint32_t struct_size;
    uint16_t major;
    uint16_t minor;
    const char* name;
    const char* summary;
    const npushmem_config_row* config;
    uint32_t config_count;
    uint32_t reserved;

    /* mandatory. open: joins the job; on success *rank and *nranks are set. */
    int32_t (*open)(const npushmem_host* host, const npushmem_bootstrap_params* params, void** self, int32_t* rank,
                    int32_t* nranks, npushmem_error* error);
    /* Leaves the job without waiting for others; releases everything; never fails. */
    void (*close)(void* self);
    /* Every rank gives `bytes` bytes (the same number on all ranks, 0 allowed: then it is a barrier) and receives
     * nranks * bytes, in order of rank. `send` may be the own rank's place in `receive`. After a failure the content of
     * `receive` is undefined. */
    int32_t (*allgather)(void* self, const void* send, uint64_t bytes, void* receive, npushmem_error* error);
    /* No rank returns before all have entered. */
    int32_t (*barrier)(void* self, npushmem_error* error);

    /* optional. abort: reports the reason to every other rank; afterwards the instance accepts only close. */
    void (*abort)(void* self, const char* reason);
    /* Checks without blocking whether another rank has failed: OK, or the code and cause. */
    int32_t (*check)(void* self, npushmem_error* error);
    /* Without an instance: makes an id that all ranks of a new job pass to open. The process that makes it must stay
     * alive, or be rank 0's, until open has returned on all ranks; it accepts connections of unknown processes
     * meanwhile. */
    int32_t (*get_uniqueid)(const npushmem_host* host, void* id, npushmem_error* error);

    /* Since minor 1, optional. Without an instance: reports whether this bootstrap fits this process, for
     * NPUSHMEM_BOOTSTRAP=AUTO, which queries every plugin and chooses the one with the highest confidence. Inspects the
     * environment and the process itself; joins nothing and does not wait. Returns 0 or one of NPUSHMEM_RECOGNISED_x
     * (or a number between), and the sign that it found as the message of `why`. */
    int32_t (*recognise)(const npushmem_host* host, const npushmem_bootstrap_params* params, npushmem_error* why);

    /* Since minor 2, optional. Without an instance, in the process that made `id`, called by a launcher: the process of
     * `rank` in the job of `nranks` ranks has ended; `how` says how ("PE 3 exited with status 0"). Ranks whose open
     * waits for it, now or later, fail at once with `how`. Does not wait. */
    int32_t (*rank_ended)(const npushmem_host* host, const void* id, int32_t rank, int32_t nranks, const char* how,
                          npushmem_error* error);
} npushmem_bootstrap_v1;

typedef const npushmem_bootstrap_v1* (*npushmem_bootstrap_entry)(void);

#ifdef __cplusplus
}
#endif
#endif
