/* SPDX-License-Identifier: BSD-3-Clause */
/* npushmem: extensions beyond OpenSHMEM, under the prefix npushmemx_.
 *
 * Errors: functions that return int return 0 or a code of npushmem/plugin/abi.h, with a report; the others report, and
 * return nothing or an empty text.
 *
 * Ordering: none, except that barriers complete the same operations as the calls that they are named after.
 *
 * Parameters: id: 128 bytes, the same on all ranks; rank, nranks: number of this process, and number of processes;
 * flags: of NPUSHMEMX_INIT_; attr: made by NPUSHMEMX_INIT_ATTR_INITIALIZER; pes_per_node, pes_per_core: receive the
 * values, may be NULL; requested, provided: as for npushmem_init_thread; config, config_mask: parameters of a team, and
 * which of them count; npes: number of PEs of the team; pe_idx_in_team: the caller's number in it, different on every
 * PE; index: the number of a team, for interfaces with numbers; addr, length: memory of the program, and its size in
 * bytes (unregister_symmetric: the symmetric address). */
#ifndef NPUSHMEMX_H
#define NPUSHMEMX_H

#include "npushmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Start without a launcher --------------------------------------------------------------------------------------
 * One PE makes an id, the program distributes its bytes by its own means, every PE sets it with its rank and the number
 * of ranks, and all call init_attr:
 *
 *     npushmemx_uniqueid_t id;
 *     if (rank == 0) npushmemx_get_uniqueid(&id);
 *     broadcast(&id, sizeof id);   // the program's own: from rank 0 to all
 *     npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
 *     npushmemx_set_attr_uniqueid_args(rank, nranks, &id, &attr);
 *     npushmemx_init_attr(NPUSHMEMX_INIT_WITH_UNIQUEID, &attr);
 *
 * All functions here return 0, or a code of npushmem/plugin/abi.h, with a report. */

/* Opaque. It contains a secret: any process that has the bytes can join the job. */
typedef struct npushmemx_uniqueid_s {
    unsigned char bytes[128];
} npushmemx_uniqueid_t;

/* Filled by NPUSHMEMX_INIT_ATTR_INITIALIZER and the set_attr functions. The version fields record the version that the
 * program was compiled with; an older library refuses it in init_attr. */
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

/* Flags of init_attr, one at a time. 0: as npushmem_init, from the environment. WITH_UNIQUEID: as in the example above.
 * WITH_MPI_COMM: the PEs are the ranks of a communicator, of which `attribute` has the address (an MPI_Comm*); between
 * MPI_Init and MPI_Finalize. WITH_SHMEM: the PEs are those of the OpenSHMEM program that runs in this process, on
 * another library. A bootstrap that NPUSHMEM_BOOTSTRAP names is used instead of the last two. */
#define NPUSHMEMX_INIT_WITH_UNIQUEID 1u
#define NPUSHMEMX_INIT_WITH_MPI_COMM 2u
#define NPUSHMEMX_INIT_WITH_SHMEM 4u

/* Makes an id and serves the ranks that join with it; the process must live until all have joined. Call it before init.
 */
NPUSHMEM_API int npushmemx_get_uniqueid(npushmemx_uniqueid_t* id);
NPUSHMEM_API int npushmemx_set_attr_uniqueid_args(int rank, int nranks, const npushmemx_uniqueid_t* id,
                                                  npushmemx_init_attr_t* attr);
NPUSHMEM_API int npushmemx_init_attr(unsigned int flags, npushmemx_init_attr_t* attr);
/* For <nvshmem.h>, whose flags it takes: as init_attr, with a level of thread support as in npushmem_init_thread;
 * provided may be NULL. With ends_process not 0 a failed start ends the process with status 1, unless NPUSHMEM_ON_ERROR
 * is "report". */
NPUSHMEM_API int npushmemx_nvshmem_init(unsigned int flags, npushmemx_init_attr_t* attr, int requested, int* provided,
                                        int ends_process);

/* ---- Teams of any PEs ----------------------------------------------------------------------------------------------
 * A team of any PEs in any order; no other PE takes part. One of the members makes an id, the program passes it to the
 * others by its own means, and all call team_init:
 *
 *     npushmemx_team_config_t config = {0, 0};
 *     if (my_index == 0) npushmemx_team_get_uniqueid(&config.uniqueid);
 *     hand_out(&config.uniqueid);   // the program's own: to the other members
 *     npushmemx_team_init(&team, &config, NPUSHMEMX_TEAM_UNIQUEID, 3, my_index);
 *
 * The team works as any other in translate_pe, splits, contexts, collective calls and team_destroy. */

typedef uint64_t npushmemx_team_uniqueid_t;

/* Parameters of team_init, and the bit of config_mask that makes the id count. (NPUSHMEM_TEAM_NUM_CONTEXTS makes
 * num_contexts count, which has its meaning of npushmem_team_config_t.) */
typedef struct npushmemx_team_config_s {
    int num_contexts;
    npushmemx_team_uniqueid_t uniqueid;
} npushmemx_team_config_t;
#define NPUSHMEMX_TEAM_UNIQUEID 2L

/* *uniqueid receives an unused id; it serves one team, of which this PE is a member. Local; any thread. Returns 0, or a
 * code of npushmem/plugin/abi.h, with a report: not initialised, a null pointer. */
NPUSHMEM_API int npushmemx_team_get_uniqueid(npushmemx_team_uniqueid_t* uniqueid);
/* Collective over the `npes` PEs that become the team's members, in any of their threads; the calling PE becomes number
 * pe_idx_in_team. config_mask must have NPUSHMEMX_TEAM_UNIQUEID. *team receives the handle, or NPUSHMEM_TEAM_INVALID.
 * Completes nothing.
 *
 * Returns 0, or a code, with a report, on all PEs that call it now or later: npes differs among them or exceeds the
 * job's, two PEs gave one index, an index is outside the team, a PE calls twice, no team can be made. The wait for a
 * missing PE ends at NPUSHMEM_TIMEOUT, and when a PE of the job dies, which may be the missing one. So does the wait
 * for the PE that made the id, whose failure ends the wait of the others. An id that no PE of the job made fails, and
 * so does a used one; if its maker has used a few dozen other ids since, the failure is a wait that ends at the
 * deadline. */
NPUSHMEM_API int npushmemx_team_init(npushmem_team_t* team, const npushmemx_team_config_t* config, long config_mask,
                                     int npes, int pe_idx_in_team);

/* ---- Huge pages ----------------------------------------------------------------------------------------------------
 * A hint of npushmem_malloc_with_hints, which may be combined with others; equal on all PEs: the object begins at a
 * multiple of 2 MiB, and may need up to 2 MiB more of the heap. The heap commits each whole 2 MiB of memory that it has
 * not committed before as a huge page, with the hint or without, if Linux (6.1 or later) finds one and unless
 * NPUSHMEM_HUGE_PAGES=0. With the hint no part before the first multiple remains. A PE commits, zeroes and places on
 * its NUMA node its own copy. */
#define NPUSHMEMX_MALLOC_HUGE_PAGES (1L << 16)

/* ---- Predefined teams ----------------------------------------------------------------------------------------------
 * Beside NPUSHMEM_TEAM_WORLD and NPUSHMEM_TEAM_SHARED. */

/* The PEs of this host, in the order of the world, whether or not they map each other. */
#define NPUSHMEMX_TEAM_NODE ((npushmem_team_t)3)
/* The PEs that have this PE's number in NPUSHMEMX_TEAM_NODE, one of each host that has so many PEs, in the order of the
 * hosts. */
#define NPUSHMEMX_TEAM_SAME_MYPE_NODE ((npushmem_team_t)4)

/* For interfaces in which a team is a number: the number of a handle, and the handle of a number. The predefined teams
 * are 0 to 3 in the order of their constants, others have small numbers from 4 on, and NPUSHMEM_TEAM_INVALID is -1. The
 * number of a destroyed team may become that of a later one. The handle of a number without a team is
 * NPUSHMEM_TEAM_INVALID, or the handle of a team that was destroyed, with which calls fail. Any thread; no report. */
NPUSHMEM_API int32_t npushmemx_team_to_index(npushmem_team_t team);
NPUSHMEM_API npushmem_team_t npushmemx_team_from_index(int32_t index);

/* ---- Continuing without dead PEs -----------------------------------------------------------------------------------
 * With NPUSHMEM_ON_PEER_DEATH=survive a job goes on when a PE dies. A call that needs the dead PE fails with
 * NPUSHMEM_E_PEER_DEAD, and its report names the PE: functions that return a code return it, after others
 * npushmemx_last_error has it. All other calls go on. The living make a team of themselves and continue with it:
 *
 *     npushmemx_clear_error();
 *     npushmem_barrier_all();
 *     if (npushmemx_last_error(NULL) == NPUSHMEM_E_PEER_DEAD) // npushmem/plugin/abi.h
 *         npushmemx_team_shrink(NPUSHMEM_TEAM_WORLD, &team);  // which was NPUSHMEM_TEAM_WORLD
 *     npushmem_team_sync(team);
 *
 * Which calls need a dead PE: operations on it; collective calls of a team that it belongs to, among them barrier_all
 * and the calls of the symmetric heap; waits for a value (wait_until, signal_wait_until), which any PE may write, until
 * the program knows of the death by team_shrink or team_get_failed; so does team_init, whose missing members are
 * unknown. The calls of the symmetric heap fail from a death on until team_shrink has made a team of
 * NPUSHMEM_TEAM_WORLD, or of the last such team; then they are collective over the members of that team while it
 * exists. A call of the heap during which a PE dies may succeed on some of the others; then no PE uses or frees its
 * object any more. barrier_all and team_barrier synchronise their PEs also if operations on a dead PE outside the team
 * failed, and then return that failure. The memory of a dead PE that is mapped stays readable and writable until
 * finalize. A lock that a dead PE holds goes to another PE; what the lock protects may be half changed.
 * npushmem_finalize is collective over the living.
 *
 * A PE counts as dead when its process has ended or a transport has lost it. A cut cable therefore divides a job: the
 * PEs of either side find those of the other side dead and continue without them. A job whose sides must not both
 * continue ends all but one, for example the side without PE 0. */

/* Collective over the living members of the parent, one thread at a time, no matter which of the parent's calls failed
 * before. *new_team receives a team of the members that are alive, in the order of their numbers, the same on all of
 * them; it may be the whole parent. A member that dies during the call is in the new team or is not, on all members
 * alike. Every operation that a program may call on a team works on it. Another death needs another call, on either
 * team. Waits for a value no longer end because of the members that are missing. Completes nothing.
 *
 * Returns 0, or a code, with a report: no memory for the team, on all living members; NPUSHMEM_TIMEOUT has passed, or
 * the transport has failed; NPUSHMEM_E_PEER_DEAD: the others count this PE among the dead, because they have lost it. A
 * PE that receives one of the last three codes counts as dead for the others: no later shrink of the parent waits for
 * it, and each fails on it with NPUSHMEM_E_PROTOCOL. It may still be a member of the new team if it failed at the end
 * of the call; calls of the team wait for it until it finalizes or ends. */
NPUSHMEM_API int npushmemx_team_shrink(npushmem_team_t parent, npushmem_team_t* new_team);
/* *count receives the number of members that this PE knows to be dead, failed[] the first `max` of them: numbers in the
 * team, ascending. Waits for a value no longer end because of those in failed[]. Local; PEs may give different answers.
 * Returns 0, or a code, with a report. */
NPUSHMEM_API int npushmemx_team_get_failed(npushmem_team_t team, int max, int* failed, int* count);

/* ---- Barriers ------------------------------------------------------------------------------------------------------
 */

/* Collective. npushmem_barrier_all by this algorithm (as in NPUSHMEM_BARRIER_ALGO: "tree", "dissemination_k:8",
 * "auto"), for this call only; all PEs give the same. Returns 0 or a code of npushmem/plugin/abi.h, with a report:
 * unknown name, radix out of range, an algorithm that does not support this number of PEs; then no PE has waited. */
NPUSHMEM_API int npushmemx_barrier_all_by(const char* algorithm);
/* Collective over the team; one thread at a time. npushmem_team_sync by this algorithm, for this call only; otherwise
 * as above. */
NPUSHMEM_API int npushmemx_team_sync_by(npushmem_team_t team, const char* algorithm);
/* Sets the algorithm of the team's syncs, and of the barriers inside its collective operations, from now on, instead of
 * NPUSHMEM_BARRIER_ALGO; for NPUSHMEM_TEAM_WORLD also of barrier_all and sync_all. Does not synchronise, but all
 * members must call it, with the same text, between the same two barriers of the team, while no other thread uses the
 * team. Returns 0 or a code, with a report, as above; on failure nothing changes. */
NPUSHMEM_API int npushmemx_team_set_barrier(npushmem_team_t team, const char* algorithm);
/* Sets who runs the team's barrier, sync, broadcast, collect, fcollect, alltoall, reductions and reduce-scatter from
 * now on:
 *   "npushmem"           npushmem, by the methods that the rules of NPUSHMEM_COLL_TUNING_FILE select, if any
 *   "npushmem:<method>"  npushmem, by this method in the collectives that have it and for the calls that it serves, and
 *                        without rules in all others
 *   the name of the library that NPUSHMEM_COLL_LIBRARY has loaded: this, in all calls that it supports
 *   "auto"               as at the team's start: npushmem or the library, by the rules
 * Methods of broadcast: ring (small, without a barrier), push (the root writes to all, then a
 * barrier), pull (the others read between two barriers), scatter (each member reads its part from the root, and the
 * other parts from the members), hosts; of collect: push, pull, published (members copy to the runtime's memory, then a
 * barrier, and each reads the copies; at most 2 KiB of each member; of collect only where all members map each other
 * and no library is loaded); of fcollect and alltoall: lines (as ring), push, pull, published; of fcollect also hosts;
 * of reductions: lines, published, partitioned (each member combines one part), hosts; of reduce-scatter: lines, pull.
 * hosts serves teams on several hosts with the same number of members, at least two, on each, in jobs whose PEs map all
 * PEs of their hosts: bytes for all members of a host cross the network once, divided among them. It reduces the arrays
 * of each host first, then those of the hosts, and does not reduce f16 and bf16. npushmem-perf tune-collectives times
 * the methods. Otherwise as npushmemx_team_set_barrier. Another name or method is an error (NPUSHMEM_E_ARGUMENT). A
 * library may refuse a team at the first call that is left to it: npushmem's own collectives serve the team then, and
 * this function returns NPUSHMEM_E_UNSUPPORTED for the library's name from then on. */
NPUSHMEM_API int npushmemx_team_set_collectives(npushmem_team_t team, const char* library);
/* Collective over the team; one thread at a time. Completes this PE's operations on the default context, as quiet, then
 * returns when all members have entered. Returns 0 or a code, with a report. */
NPUSHMEM_API int npushmemx_team_barrier(npushmem_team_t team);
/* Lists the algorithms, one a line: name, ":k" behind it if it takes a radix, blanks, description. Any time. */
NPUSHMEM_API const char* npushmemx_describe_barriers(void);
/* Returns the inputs of automatic choices: PEs per node (the largest number) and per core (of the most crowded
 * machine). Returns 0, or the code for "not initialised". Either pointer may be NULL. */
NPUSHMEM_API int npushmemx_get_pe_density(int* pes_per_node, double* pes_per_core);

/* ---- Reuse of source arrays ---------------------------------------------------------------------------------------
 */

/* Waits until the sources of all earlier puts of this PE on the default context may be changed or freed, also of the
 * _nbi forms, and the results of its earlier _nbi gets and atomics may be read. It promises nothing about the
 * targets: fence orders and quiet completes there. If all PEs are mapped it does nothing, because a call to a mapped PE
 * has copied its data when it returns. For operations over transports it waits as quiet does. Any thread. Failures are
 * reported, as those of npushmem_quiet. */
NPUSHMEM_API void npushmemx_flush(void);
/* The same for the operations on the context `ctx`. NPUSHMEM_CTX_INVALID: nothing. */
NPUSHMEM_API void npushmemx_ctx_flush(npushmem_ctx_t ctx);

/* ---- Signals, and functions for more types -------------------------------------------------------------------------
 */

/* Sets the 64-bit signal word of `pe` to `signal`, or adds `signal` to it, as npushmem_signal_set and
 * npushmem_signal_add do. sig_op: NPUSHMEM_SIGNAL_OP_SET or NPUSHMEM_SIGNAL_OP_ADD. */
NPUSHMEM_API void npushmemx_signal_op(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);

/* Conversions of numbers of 16 bits. Those from float round to nearest, ties to even; overflow gives infinity. */
NPUSHMEM_API npushmemx_half_t npushmemx_float_to_half(float value);
NPUSHMEM_API float npushmemx_half_to_float(npushmemx_half_t value);
NPUSHMEM_API npushmemx_bfloat16_t npushmemx_float_to_bfloat16(float value);
NPUSHMEM_API float npushmemx_bfloat16_to_float(npushmemx_bfloat16_t value);

/* The functions of npushmem/functions/rma.h and npushmem/functions/collectives.h for half and bfloat16, such as
 * npushmemx_half_put and npushmemx_bfloat16_sum_reduce. Reductions and scans combine in float and round once, at the
 * end. npushmem/functions/reducescatter.h: reduce-scatter for every type. npushmem/functions/alltoallv.h: all-to-all
 * with counts for every type. npushmem/functions/float_atomics.h: addition for float and double. */
#define NPUSHMEM_DECLARE(NAME, RET, ...) NPUSHMEM_API RET npushmemx_##NAME(__VA_ARGS__);
#define NPUSHMEM_HALF_TYPES
#define NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, ...) \
    NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)        \
    NPUSHMEM_DECLARE(ctx_##NAME##_##OP, RET, npushmem_ctx_t ctx, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/rma.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/collectives.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/reducescatter.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/alltoallv.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_HALF_TYPES
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_PLAIN(OP, RET, ARGS, ...) NPUSHMEM_DECLARE(OP, RET, __VA_ARGS__)
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/reducescatter.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, ...) \
    NPUSHMEM_DECLARE(NAME##_##OP, RET, __VA_ARGS__)        \
    NPUSHMEM_DECLARE(ctx_##NAME##_##OP, RET, npushmem_ctx_t ctx, __VA_ARGS__)
#define NPUSHMEM_ONLY "npushmem/functions/float_atomics.h"
#include "npushmem/functions.h"
#undef NPUSHMEM_ONLY
#undef NPUSHMEM_DECLARE

/* ---- Buffers of the program ----------------------------------------------------------------------------------------
 * A program's own memory as symmetric memory, and as memory that NICs keep registered. The names and arguments are
 * those of NVSHMEM 3.
 *
 *     double* own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
 *     double* there = npushmemx_buffer_register_symmetric(own, bytes, 0);
 *     npushmem_double_p(there + 3, 1.0, pe); // the PE `pe` reads it at own[3]
 *     npushmemx_buffer_unregister_symmetric(there, bytes); */

/* Makes `length` bytes at `addr` symmetric. Collective over all PEs, with equal lengths; the addresses may differ, and
 * each PE's memory may be of another kind. Returns the symmetric address, which all other calls take: put, get,
 * atomics, collectives, waits and npushmem_ptr. The program itself may use either address. `flags` is 0. No
 * other thread uses the buffer during this call and the call that ends the registration; until then the program
 * neither unmaps nor frees it.
 *
 * addr and length are multiples of the page size (aligned_alloc, mmap). The memory is readable, writable, of one kind,
 * and on no stack:
 * - private memory (malloc, anonymous mappings, private mappings of files). The call copies it to the symmetric heap
 *   and maps the heap's pages at its address. A child of fork then shares it, as it shares the heap.
 * - shared memory of one regular file: memfd_create, shm_open, files. It stays where it is; the PEs of the host map the
 *   file too. This process still has a descriptor of the file open, or the file its name. Not over verbs, whose
 *   NIC pins the heap's pages, nor over RDMA devices of libfabric and ucx, which is not detected. Not where
 *   PEs of a host are in different containers.
 * Shared memory without a file (MAP_ANONYMOUS), of devices, and of shmget fails.
 *
 * The buffer takes `length` bytes of the symmetric heap's address space, rounded up for alignment: raise
 * NPUSHMEM_SYMMETRIC_SIZE for it. Memory of files takes no memory of the heap.
 *
 * NULL on all PEs, with a report, if any PE fails, and nothing has changed: NPUSHMEM_E_ARGUMENT (null, zero or
 * unaligned length, other memory, overlap with a registered buffer, symmetric already, also in another world, flags),
 * NPUSHMEM_E_RANGE (beyond the end of the file), NPUSHMEM_E_MEMORY (the heap or the machine has no room),
 * NPUSHMEM_E_MISMATCH (lengths differ, or a PE makes another call), NPUSHMEM_E_UNSUPPORTED (a file over verbs, or
 * between containers). Completes the operations that npushmem_malloc completes. */
NPUSHMEM_API void* npushmemx_buffer_register_symmetric(void* addr, size_t length, int flags);
/* Ends a registration, by the symmetric address and the length. Collective over all PEs. First completes this PE's
 * operations on the default context, and waits for the other PEs, as npushmem_free does; then the contents are at the
 * program's address alone. Pages that the program has unmapped or replaced meanwhile stay as they are.
 * npushmem_finalize ends all registrations.
 *
 * Returns 0, or a code with a report on all PEs. NPUSHMEM_E_ARGUMENT (no such symmetric address, another length),
 * NPUSHMEM_E_MISMATCH: the buffer stays registered. NPUSHMEM_E_MEMORY, NPUSHMEM_E_SYSTEM: a PE has no private memory
 * for the contents, or cannot read /proc/self/maps; its contents stay in memory of the heap that is not used again, and
 * the registration has ended. NPUSHMEM_E_PEER_DEAD, NPUSHMEM_E_TIMEOUT: a PE is missing; the registration may have
 * ended on some PEs. NPUSHMEM_E_NOT_INITIALIZED: outside init..finalize. */
NPUSHMEM_API int npushmemx_buffer_unregister_symmetric(void* addr, size_t length);

/* Registers memory with NICs, once, for transfers from and to it as the local side. Local; any thread. Any memory may
 * be the local side without it. Over verbs, transfers within the buffer then need no registration and no copy of their
 * own, also in memory of files, which its cache of registrations leaves out. It changes nothing over other transports:
 * libfabric, ucx and hccs copy the memory or their libraries cache registrations, and mapped memory needs none. The
 * program does not unmap the memory before it unregisters it, and completes its transfers before.
 *
 * Returns 0, or a code with a report: NPUSHMEM_E_ARGUMENT (null, no bytes, memory that this process cannot read and
 * write or that is of several kinds, an overlap with a registered buffer), NPUSHMEM_E_SYSTEM (/proc/self/maps cannot be
 * read), NPUSHMEM_E_NOT_INITIALIZED (outside init..finalize), or the code with which the NIC refuses, such as
 * NPUSHMEM_E_MEMORY. */
NPUSHMEM_API int npushmemx_buffer_register(void* addr, size_t length);
/* Ends the registration of the buffer at `addr`. Returns 0, or a code with a report: NPUSHMEM_E_ARGUMENT (none is
 * registered there), NPUSHMEM_E_NOT_INITIALIZED (outside init..finalize). */
NPUSHMEM_API int npushmemx_buffer_unregister(void* addr);
/* Ends all registrations by npushmemx_buffer_register, as npushmem_finalize does. */
NPUSHMEM_API void npushmemx_buffer_unregister_all(void);

/* ---- Statistics ----------------------------------------------------------------------------------------------------
 */

/* Counters of this PE since init; times in nanoseconds. Those of barriers (barrier_all, sync_all, and the barriers
 * inside collective calls of the world) count only with NPUSHMEM_STATS=1, which also prints the table of all PEs at
 * finalize; one barrier in NPUSHMEM_STATS_EVERY is timed. */
typedef struct npushmemx_statistics {
    uint64_t barriers;
    uint64_t timed_barriers;
    uint64_t barrier_time; /* sum over the timed barriers */
    uint64_t longest_barrier;
    uint64_t last_arrivals;      /* timed barriers at which this PE arrived last on its host; another PE detects that
                                  * and records it a moment later. 0 if PEs do not map each other */
    uint64_t last_arrival_delay; /* delay after the last but one, summed over them */
    uint64_t waits;              /* waits of any kind whose condition was not true at once */
    uint64_t wait_time;          /* in waits longer than a few polls */
    uint64_t spins;              /* polls with a pause */
    uint64_t yields;             /* times that the thread yielded its core */
    uint64_t sleeps;             /* times that the thread slept */
    uint64_t parks;              /* sleeps on a flag whose writer wakes the sleeper */
    uint64_t liveness_checks;    /* checks whether PEs are alive */
    uint64_t wakes;              /* sleepers that this PE woke */
} npushmemx_statistics_t;

/* Fills *statistics. Between init and finalize; any thread, but counts that other threads make at that moment may be
 * missing. Returns 0, or a code of npushmem/plugin/abi.h, with a report: not initialised, a null pointer. */
NPUSHMEM_API int npushmemx_get_statistics(npushmemx_statistics_t* statistics);
/* The same for the calling PE's barriers in one team, over the team's life. Waits are counted only for
 * NPUSHMEM_TEAM_WORLD, and 0 for other teams. Last arrivals are known only in teams whose members map each other. Any
 * thread, while the team exists. Returns 0 or a code, with a report: no such team, a null pointer. */
NPUSHMEM_API int npushmemx_team_get_statistics(npushmem_team_t team, npushmemx_statistics_t* statistics);

/* ---- Selections ----------------------------------------------------------------------------------------------------
 * The selections of the start with their reasons, for programs and tests that check them. The npushmemx_describe_
 * functions return the same as text for people; NPUSHMEM_INFO=json prints them as JSON.
 *
 * Set struct_size to the size of the structure before each call. The call writes at most that many bytes, and sets
 * struct_size to the number of bytes that hold values: fewer if the library is older than this header. Later versions
 * append members and change none. Texts end with a null byte; longer ones are cut.
 *
 * The functions are local and complete nothing. Any thread may call them between init and finalize. They return 0, or
 * a code of npushmem/plugin/abi.h, with a report, and then write nothing. NPUSHMEM_E_NOT_INITIALIZED: outside
 * init..finalize; NPUSHMEM_E_ARGUMENT: a null pointer, a struct_size without room for the first value, no such team;
 * NPUSHMEM_E_RANGE: no such PE. */

/* Capabilities of a route, as its transport reports them: NPUSHMEM_CAP_x of npushmem/plugin/transport.h. */
#define NPUSHMEMX_ROUTE_MAPPED UINT64_C(0x1) /* the CPU loads and stores the PE's memory; see npushmem_ptr */
#define NPUSHMEMX_ROUTE_PUT UINT64_C(0x2)
#define NPUSHMEMX_ROUTE_GET UINT64_C(0x4)
#define NPUSHMEMX_ROUTE_ATOMIC UINT64_C(0x8) /* native atomics: those of atomic_32 and atomic_64 */
#define NPUSHMEMX_ROUTE_PUT_SIGNAL UINT64_C(0x10)
#define NPUSHMEMX_ROUTE_ORDERED UINT64_C(0x20)          /* puts arrive in order even without a fence */
#define NPUSHMEMX_ROUTE_REMOTE UINT64_C(0x80)           /* the transport reaches PEs of other hosts */
#define NPUSHMEMX_ROUTE_REPORTS_DEATH UINT64_C(0x400)   /* the transport detects the death of the PE */
#define NPUSHMEMX_ROUTE_TARGET_PROGRESS UINT64_C(0x800) /* operations are delivered to a PE that makes no call */

/* Entries of the arrays of NICs below. A PE may have more NICs: the counts count all of them. */
#define NPUSHMEMX_NICS_MAX 16

/* One NIC port of a PE. Arrays contain it, so it never grows. */
typedef struct npushmemx_nic_s {
    char name[64];            /* the system's name, for instance mlx5_0 */
    char pci_address[32];     /* 0000:3b:00.0; empty: unknown */
    char distance[8];         /* from the PE's device: PIX, PXB, PHB, NODE or SYS */
    uint64_t bits_per_second; /* of the port; 0: unknown */
    uint32_t port;
    uint32_t rail;        /* pairs ports of two PEs */
    uint32_t sharing_pes; /* other PEs of the job on the host that use the port */
    uint32_t reserved;    /* 0 */
} npushmemx_nic_t;

/* The route of the calling PE to one PE. */
typedef struct npushmemx_route_s {
    uint32_t struct_size;
    int32_t pe;
    char transport[64];    /* as selected, with its decorators: "p2p", "fault(p2p)" */
    uint64_t capabilities; /* bits NPUSHMEMX_ROUTE_ */
    uint32_t atomic_32;    /* native atomics on 32-bit objects: bit NPUSHMEM_ATOMIC_x of npushmem/plugin/transport.h */
    uint32_t atomic_64;    /* the same on 64-bit objects */
    char reason[256];      /* one clause: "same host, shared memory" */
    char host_name[64];    /* of the PE; emulated hosts have the name of their machine */
    int32_t host;          /* number of the PE's host in the job: in the order of the hosts' lowest PEs, from 0 */
    int32_t same_host;     /* 1: the PE runs on the host of the calling PE */
    int32_t proxied;       /* 1: kernels pass their operations to a proxy thread, unless a launch selects otherwise */
    int32_t peer_nics_known; /* 1: peer_nic_count and peer_nics are set; 0: the PE runs on another host */
    uint32_t nic_count;      /* NICs of the calling PE that the transport uses */
    uint32_t peer_nic_count; /* NICs of the PE that the transport uses */
    npushmemx_nic_t nics[NPUSHMEMX_NICS_MAX];
    npushmemx_nic_t peer_nics[NPUSHMEMX_NICS_MAX];
} npushmemx_route_t;

/* Fills *route with the route from this PE to the PE `pe` of the world, which may be this PE. */
NPUSHMEM_API int npushmemx_get_route(int pe, npushmemx_route_t* route);

/* The bootstrap by which the PEs found each other. */
typedef struct npushmemx_bootstrap_s {
    uint32_t struct_size;
    int32_t rank;       /* of this process, from 0: the number of the PE */
    int32_t nranks;     /* number of processes */
    int32_t confidence; /* with which the bootstrap recognised this process: 0, or from NPUSHMEM_RECOGNISED_NOTHING to
                         * NPUSHMEM_RECOGNISED_BY_USER of npushmem/plugin/bootstrap.h */
    char name[64];      /* "uid", "pmix" */
    char reason[256];   /* "set by NPUSHMEM_BOOTSTRAP", "chosen by npushmem-run; ...", "chosen by itself: ..." */
} npushmemx_bootstrap_t;

/* Fills *bootstrap. */
NPUSHMEM_API int npushmemx_get_bootstrap(npushmemx_bootstrap_t* bootstrap);

/* The NICs that start-up assigned to one PE. */
typedef struct npushmemx_nics_s {
    uint32_t struct_size;
    int32_t pe;
    int32_t known;      /* 0: this PE does not know the NICs of that PE, for the reason in `reason` */
    uint32_t count;     /* 0 if no transport of the PE drives a NIC */
    char transport[64]; /* that uses the NICs; empty: none */
    char device[128];   /* the place of the PE's device, from which the distances count; empty without a transport */
    char reason[256];   /* one sentence: the policy's reason for these NICs, or why there is none */
    npushmemx_nic_t nics[NPUSHMEMX_NICS_MAX]; /* the nearest first */
} npushmemx_nics_t;

/* Fills *nics with the NICs of the PE `pe` of the world. A PE knows the NICs of the PEs of its own host, if a transport
 * of its own drives NICs. */
NPUSHMEM_API int npushmemx_get_nic_assignment(int pe, npushmemx_nics_t* nics);

/* The barrier algorithm of a team: that of its syncs, and for the world of barrier_all and sync_all. */
typedef struct npushmemx_barrier_choice_s {
    uint32_t struct_size;
    int32_t radix;       /* 0: the algorithm has none */
    char algorithm[64];  /* without its radix: "dissemination_k" */
    char reason[256];    /* "NPUSHMEM_BARRIER_ALGO", "every PE has a core: the fewest rounds win" */
    int32_t npes;        /* of the team */
    int32_t hosts;       /* on which the members count; always 1 for other teams than the world */
    int32_t mapped;      /* 1: every member maps every member; 0: the barrier runs over the transports */
    int32_t reserved;    /* 0 */
    double pes_per_core; /* of the job's most crowded machine */
} npushmemx_barrier_choice_t;

/* Fills *choice with the algorithm of the team now. Not while npushmemx_team_set_barrier or the destruction of the same
 * team runs in another thread. */
NPUSHMEM_API int npushmemx_get_barrier(npushmem_team_t team, npushmemx_barrier_choice_t* choice);

/* ---- Version, errors, reports --------------------------------------------------------------------------------------
 */

NPUSHMEM_API void npushmemx_vendor_get_version_info(int* major, int* minor, int* patch);

/* Returns the code of the calling thread's most recent failure, 0 if it had none; *message (may be NULL) receives its
 * text, valid until the thread's next failure. Any time, any thread. A program that calls it knows all failures of the
 * thread since npushmemx_clear_error: npushmem-run does not count them as failures of the job (see NPUSHMEM_ON_ERROR).
 */
NPUSHMEM_API int npushmemx_last_error(const char** message);
NPUSHMEM_API void npushmemx_clear_error(void);
/* Returns a clause that explains a code of npushmem/plugin/abi.h: "a PE has died"; for other numbers it says that the
 * code is unknown. Never NULL; valid for ever. What exactly failed is in the message of npushmemx_last_error. Any time,
 * any thread. */
NPUSHMEM_API const char* npushmemx_error_string(int code);

/* The configuration choices and their reasons, as text of several lines; valid until finalize. The empty string when
 * not initialised. */
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

/* ---- Several worlds in one process: npushmemx_world_* --------------------------------------------------------------
 */
#include "npushmem/worlds.h"

/* ---- Operations in the order of a stream: npushmemx_*_on_stream ----------------------------------------------------
 */
#include "npushmem/on_stream.h"

/* ---- Mixture of experts: npushmemx_moe_* --------------------------------------------------------------------------
 */
#include "npushmem/moe.h"

#endif
