/* npushmem: extensions beyond OpenSHMEM, under the prefix npushmemx_.
 *
 * Errors: those that return int return 0 or a code of npushmem/plugin/abi.h, with a report; the others report, and
 * return nothing or an empty text.
 *
 * Ordering: none, but for the meetings, which complete what the calls that they are named after complete.
 *
 * Parameters: id: 128 bytes, the same at all ranks; rank, nranks: this process's number, and how many there are; flags:
 * of NPUSHMEMX_INIT_; attr: made by NPUSHMEMX_INIT_ATTR_INITIALIZER; pes_per_node, pes_per_core: receive the figures,
 * may be NULL; config, config_mask: parameters of a team, and which of them count; npes: how many PEs the team has;
 * pe_idx_in_team: the caller's number in it, which no other has. */
#ifndef NPUSHMEMX_H
#define NPUSHMEMX_H

#include "npushmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Start without a launcher --------------------------------------------------------------------------------------
 * One PE makes an id, the program distributes its bytes by whatever means it has, every PE sets it with its rank and
 * the number of ranks, and all call init_attr:
 *
 *     npushmemx_uniqueid_t id;
 *     if (rank == 0) npushmemx_get_uniqueid(&id);
 *     broadcast(&id, sizeof id);   // the program's own: from rank 0 to all
 *     npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
 *     npushmemx_set_attr_uniqueid_args(rank, nranks, &id, &attr);
 *     npushmemx_init_attr(NPUSHMEMX_INIT_WITH_UNIQUEID, &attr);
 *
 * All functions here return 0, or a code of npushmem/plugin/abi.h, with a report. */

/* Opaque. It holds a secret: whoever has the bytes can join the job. */
typedef struct npushmemx_uniqueid_s {
    unsigned char bytes[128];
} npushmemx_uniqueid_t;

/* Fill by NPUSHMEMX_INIT_ATTR_INITIALIZER and the set_attr functions. The version fields record what the program was
 * compiled with; init_attr refuses a library that is older. */
typedef struct npushmemx_init_attr_s {
    uint32_t struct_size;
    int32_t version_major;
    int32_t version_minor;
    int32_t version_patch;
    int32_t rank;
    int32_t nranks;
    npushmemx_uniqueid_t uniqueid;
    const void* attribute; /* for other bootstraps */
} npushmemx_init_attr_t;

#define NPUSHMEMX_INIT_ATTR_INITIALIZER                                                                               \
    {                                                                                                                 \
        sizeof(npushmemx_init_attr_t), NPUSHMEMX_VERSION_MAJOR, NPUSHMEMX_VERSION_MINOR, NPUSHMEMX_VERSION_PATCH, -1, \
            -1, {{0}}, 0                                                                                              \
    }

/* Flags of init_attr. 0: as npushmem_init, from the environment. */
#define NPUSHMEMX_INIT_WITH_UNIQUEID 1u

/* Makes an id and serves the ranks that join with it; the process must live until all have joined. Before init. */
NPUSHMEM_API int npushmemx_get_uniqueid(npushmemx_uniqueid_t* id);
NPUSHMEM_API int npushmemx_set_attr_uniqueid_args(int rank, int nranks, const npushmemx_uniqueid_t* id,
                                                  npushmemx_init_attr_t* attr);
NPUSHMEM_API int npushmemx_init_attr(unsigned int flags, npushmemx_init_attr_t* attr);

/* ---- Teams of any PEs ----------------------------------------------------------------------------------------------
 * A team whose members need be in no order and at no distance of each other, and no other PE takes part. One of them
 * makes an id, the program hands it to the others by whatever means it has, and all call team_init:
 *
 *     npushmemx_team_config_t config = {0, 0};
 *     if (my_index == 0) npushmemx_team_get_uniqueid(&config.uniqueid);
 *     hand_out(&config.uniqueid);   // the program's own: to the other members
 *     npushmemx_team_init(&team, &config, NPUSHMEMX_TEAM_UNIQUEID, 3, my_index);
 *
 * The team is one like any other: for translate_pe, splits, contexts, collective calls, team_destroy. */

typedef uint64_t npushmemx_team_uniqueid_t;

/* Parameters of team_init, and the bit of config_mask that says that the id counts (NPUSHMEM_TEAM_NUM_CONTEXTS: that
 * num_contexts does, which means what it means in npushmem_team_config_t). */
typedef struct npushmemx_team_config_s {
    int num_contexts;
    npushmemx_team_uniqueid_t uniqueid;
} npushmemx_team_config_t;
#define NPUSHMEMX_TEAM_UNIQUEID 2L

/* *uniqueid receives an id that has not been used; it serves one team, of which this PE is a member. Local; any thread.
 * Returns 0, or a code of npushmem/plugin/abi.h, with a report: not initialised, a null pointer. */
NPUSHMEM_API int npushmemx_team_get_uniqueid(npushmemx_team_uniqueid_t* uniqueid);
/* Collective over the `npes` PEs that are to be the team's members, in any threads of theirs; the calling PE becomes
 * number pe_idx_in_team of it. config_mask must have NPUSHMEMX_TEAM_UNIQUEID. *team receives the handle, or
 * NPUSHMEM_TEAM_INVALID. Completes nothing.
 *
 * Returns 0, or a code, with a report, on all that have come or come later: npes differs among them or is more than the
 * job has, two gave one index, an index is no number of the team, a PE comes twice, no team can be had. A PE that does
 * not come is waited for until NPUSHMEM_TIMEOUT; so is the one that made the id, which ends the wait of the others when
 * it gives up. Refused are also an id that no PE of the job made, and one that has been used; unless its maker has used
 * a few dozen others since: then the wait for it ends at the deadline. */
NPUSHMEM_API int npushmemx_team_init(npushmem_team_t* team, const npushmemx_team_config_t* config, long config_mask,
                                     int npes, int pe_idx_in_team);

/* ---- Barriers ------------------------------------------------------------------------------------------------------
 */

/* Collective. npushmem_barrier_all by this algorithm (as in NPUSHMEM_BARRIER_ALGO: "tree", "dissemination_k:8",
 * "auto"), for this call only; all PEs give the same. Returns 0 or a code of npushmem/plugin/abi.h, with a report:
 * unknown name, radix out of range, an algorithm that cannot serve so many PEs; then nobody has been waited for. */
NPUSHMEM_API int npushmemx_barrier_all_by(const char* algorithm);
/* Collective over the team; one thread at a time. npushmem_team_sync by this algorithm, for this call only; otherwise
 * as above. */
NPUSHMEM_API int npushmemx_team_sync_by(npushmem_team_t team, const char* algorithm);
/* What the team's syncs, and the meetings inside its collective operations, go by from now on, instead of
 * NPUSHMEM_BARRIER_ALGO; for NPUSHMEM_TEAM_WORLD also barrier_all and sync_all. Meets nobody, but all members must do
 * it, with the same text, between the same two of their meetings, while no other thread uses the team. Returns 0 or a
 * code, with a report, as above; then nothing has changed. */
NPUSHMEM_API int npushmemx_team_set_barrier(npushmem_team_t team, const char* algorithm);
/* The algorithms there are, one a line: name, ":k" behind it where it takes a radix, blanks, what it does. Any time. */
NPUSHMEM_API const char* npushmemx_describe_barriers(void);
/* What automatic choices go by: PEs per node (the largest number) and per core (of the most crowded machine). Returns
 * 0, or the code for "not initialised". Either pointer may be NULL. */
NPUSHMEM_API int npushmemx_get_pe_density(int* pes_per_node, double* pes_per_core);

/* ---- Statistics ----------------------------------------------------------------------------------------------------
 */

/* Counts of this PE since init; times in nanoseconds. Those of barriers (barrier_all, sync_all, and the meetings inside
 * collective calls of the world) are kept with NPUSHMEM_STATS=1 only, which then also prints the table of all PEs at
 * finalize; one barrier in NPUSHMEM_STATS_EVERY is timed. */
typedef struct npushmemx_statistics {
    uint64_t barriers;
    uint64_t timed_barriers;
    uint64_t barrier_time; /* in the timed ones together */
    uint64_t longest_barrier;
    uint64_t last_arrivals; /* timed barriers to which this PE came last of those on its host; another PE finds that
                             * out, and writes it down a moment later. 0 where PEs do not map each other */
    uint64_t last_arrival_delay; /* how long after the last but one, in those together */
    uint64_t waits;              /* of any kind, that did not find their condition true at once */
    uint64_t wait_time;          /* in those that took longer than a few polls */
    uint64_t spins;              /* polls with a pause */
    uint64_t yields;             /* times that the core was given to another thread */
    uint64_t sleeps;             /* times that the thread slept */
    uint64_t parks;              /* of them on a flag whose writer wakes the sleeper */
    uint64_t liveness_checks;    /* times that PEs were asked about, whether they are alive */
    uint64_t wakes;              /* sleepers that this PE has woken */
} npushmemx_statistics_t;

/* Fills *statistics. Between init and finalize; any thread, though what other threads count at that moment may be
 * missing. Returns 0, or a code of npushmem/plugin/abi.h, with a report: not initialised, a null pointer. */
NPUSHMEM_API int npushmemx_get_statistics(npushmemx_statistics_t* statistics);
/* The same of the calling PE's meetings in one team, from its beginning to its end; what is counted of waits belongs to
 * no team, and is 0 for all but NPUSHMEM_TEAM_WORLD. Who came last is known in teams whose members map each other. Any
 * thread, while the team exists. Returns 0 or a code, with a report: no such team, a null pointer. */
NPUSHMEM_API int npushmemx_team_get_statistics(npushmem_team_t team, npushmemx_statistics_t* statistics);

/* ---- Version, errors, reports --------------------------------------------------------------------------------------
 */

NPUSHMEM_API void npushmemx_vendor_get_version_info(int* major, int* minor, int* patch);

/* Code of the calling thread's most recent failure, 0 if it had none; *message (may be NULL) receives its text, valid
 * until the thread's next failure. Any time, any thread. A program that calls it knows of all failures of the thread
 * since npushmemx_clear_error: npushmem-run does not count them as failures of the job (see NPUSHMEM_ON_ERROR). */
NPUSHMEM_API int npushmemx_last_error(const char** message);
NPUSHMEM_API void npushmemx_clear_error(void);

/* What was chosen and why, as text of several lines; valid until finalize. The empty string when not initialised. */
NPUSHMEM_API const char* npushmemx_describe_map(void);
NPUSHMEM_API const char* npushmemx_describe_nics(void);
NPUSHMEM_API const char* npushmemx_describe_job(void);

/* Symmetric heap of this PE, in bytes. */
typedef struct npushmemx_heap_info_s {
    uint64_t capacity;
    uint64_t used;
    uint64_t largest_free;
    uint64_t high_water;
} npushmemx_heap_info_t;
NPUSHMEM_API int npushmemx_heap_info(npushmemx_heap_info_t* info);

#ifdef __cplusplus
}
#endif

/* ---- Operations in the order of a stream: npushmemx_*_on_stream ----------------------------------------------------
 */
#include "npushmem/on_stream.h"

/* ---- Mixture of experts: npushmemx_moe_* --------------------------------------------------------------------------
 */
#include "npushmem/moe.h"

#endif
