/* SPDX-License-Identifier: BSD-3-Clause */
/* Every function of the interface, once, as rows for all uses: declarations under a prefix, definitions, forwarders,
 * overloads. Include it once for each use, after defining the row macros that are needed (the others expand to
 * nothing); it undefines them at the end.
 *
 *   row                                                               function
 *   NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, PARAMETERS...)      <NAME>_<OP>, and ctx_<NAME>_<OP> on a context
 *   NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, PARAMETERS...)          <NAME>_<OP>
 *   NPUSHMEM_SIZED_CTX(BITS, BYTES, PRE, POST, RET, ARGS, ...)        <PRE><BITS><POST>, and ctx_... on a context
 *   NPUSHMEM_SIZED(BITS, BYTES, PRE, POST, RET, ARGS, ...)            <PRE><BITS><POST>
 *   NPUSHMEM_UNTYPED_CTX(OP, RET, ARGS, PARAMETERS...)                <OP>, and ctx_<OP> on a context
 *   NPUSHMEM_PLAIN(OP, RET, ARGS, PARAMETERS...)                      <OP>
 *   NPUSHMEM_OLD_REDUCTION(NAME, TYPE, OP, ARGS, PARAMETERS...)       <NAME>_<OP>_to_all, returning void
 *   NPUSHMEM_OLD_ATOMIC(NAME, TYPE, OP, NEW, RET, ARGS, ...)          <NAME>_<OP>, the old name of <NAME>_<NEW>
 *   NPUSHMEM_OLD_WAIT(NAME, TYPE, OP, RET, ARGS, PARAMETERS...)       <NAME>_<OP>
 *   NPUSHMEM_OLD_WAIT_UNTIL(OP, RET, ARGS, PARAMETERS...)             <OP>, an overload in C++
 *
 * ARGS are the parameters' names in parentheses. With NPUSHMEM_DISTINCT_TYPES defined, typed rows come once for each
 * distinct type of the compiler; with NPUSHMEM_HALF_TYPES, for half and bfloat16 only.
 *
 * The functions of OpenSHMEM have the prefix npushmem_. Those for half and bfloat16, and the families alltoallv,
 * float_atomics, reducescatter, stream_transfers, stream_waits and stream_collectives, which only NPUSHMEM_ONLY
 * selects, have the prefix npushmemx_. */

/* The meaning of parameters by name, in all families, for readers and for scripts/make-reference.
 *
 * Parameters: ctx: the context on which the operation is started, NPUSHMEM_CTX_DEFAULT or one from ctx_create; pe:
 * number of the target PE, in the context's or the given team, else in the world; dest: destination of the data,
 * symmetric except for gets; source: source of the data, symmetric except for puts; value: the value to write, combine
 * or compare with; count: number of elements of the function's type; bytes: number of bytes; nblocks: number of blocks;
 * bsize: elements of a block; dst, sst: distance of neighbouring elements or blocks in dest and in source, in elements,
 * at least 1; fetch: receives the old value, valid after quiet; cond: the value that dest must have for value
 * to replace it; sig_addr: symmetric word of 64 bits, aligned; signal: the value to set or add to the signal word;
 * sig_op: NPUSHMEM_SIGNAL_OP_SET or NPUSHMEM_SIGNAL_OP_ADD (SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD); team: the team whose
 * members call; root: number in the team or active set of the PE whose data counts; object, objects: symmetric, aligned
 * to their size; comparison: of NPUSHMEM_CMP_EQ to NPUSHMEM_CMP_GE; values: one value for each object; indices: room
 * for count results; status: one int for each object, not 0: exclude it; or NULL; lock: symmetric word, 0 before
 * first use; start: number of the first PE; log_stride: base-2 logarithm of the distance of neighbouring PEs; stride:
 * distance of neighbouring PEs in the parent; size: number of PEs; pWrk, pSync: symmetric work arrays; config:
 * parameters of the team or session, may be NULL; config_mask: which members of config count; options: of the constants
 * named after what is made, combined by or; parent_team: the team that is split; new_team: receives the handle;
 * src_team, dest_team: teams between which a number is translated; src_pe: a number in src_team; algorithm: name as in
 * NPUSHMEM_BARRIER_ALGO; name: receives text; message: receives text, may be NULL; statistics, info: receives the
 * result; handle: made by npushmemx_moe_create; stream: a stream of this PE's device,
 * NULL for the default one; major, minor, patch: receive the parts of the version;
 * status_code: exit status. */
#ifdef NPUSHMEM_DISTINCT_TYPES
#define NPUSHMEM_RMA_TYPES NPUSHMEM_FOR_EACH_DISTINCT_RMA_TYPE
#define NPUSHMEM_ATOMIC_TYPES NPUSHMEM_FOR_EACH_DISTINCT_ATOMIC_TYPE
#define NPUSHMEM_EXTENDED_ATOMIC_TYPES NPUSHMEM_FOR_EACH_DISTINCT_EXTENDED_ATOMIC_TYPE
#define NPUSHMEM_BITWISE_TYPES NPUSHMEM_FOR_EACH_DISTINCT_BITWISE_TYPE
#define NPUSHMEM_BITWISE_REDUCTION_TYPES NPUSHMEM_FOR_EACH_DISTINCT_BITWISE_REDUCTION_TYPE
#define NPUSHMEM_ARITHMETIC_REDUCTION_TYPES NPUSHMEM_FOR_EACH_DISTINCT_ARITHMETIC_REDUCTION_TYPE
#elif defined(NPUSHMEM_HALF_TYPES)
#undef NPUSHMEM_SIZED_CTX
#undef NPUSHMEM_SIZED
#undef NPUSHMEM_UNTYPED_CTX
#undef NPUSHMEM_PLAIN
#define NPUSHMEM_RMA_TYPES NPUSHMEM_FOR_EACH_HALF_TYPE
#define NPUSHMEM_ATOMIC_TYPES NPUSHMEM_FOR_NO_TYPE
#define NPUSHMEM_EXTENDED_ATOMIC_TYPES NPUSHMEM_FOR_NO_TYPE
#define NPUSHMEM_BITWISE_TYPES NPUSHMEM_FOR_NO_TYPE
#define NPUSHMEM_BITWISE_REDUCTION_TYPES NPUSHMEM_FOR_NO_TYPE
#define NPUSHMEM_ARITHMETIC_REDUCTION_TYPES NPUSHMEM_FOR_EACH_HALF_TYPE
#else
#define NPUSHMEM_RMA_TYPES NPUSHMEM_FOR_EACH_RMA_TYPE
#define NPUSHMEM_ATOMIC_TYPES NPUSHMEM_FOR_EACH_ATOMIC_TYPE
#define NPUSHMEM_EXTENDED_ATOMIC_TYPES NPUSHMEM_FOR_EACH_EXTENDED_ATOMIC_TYPE
#define NPUSHMEM_BITWISE_TYPES NPUSHMEM_FOR_EACH_BITWISE_TYPE
#define NPUSHMEM_BITWISE_REDUCTION_TYPES NPUSHMEM_FOR_EACH_BITWISE_REDUCTION_TYPE
#define NPUSHMEM_ARITHMETIC_REDUCTION_TYPES NPUSHMEM_FOR_EACH_ARITHMETIC_REDUCTION_TYPE
#endif

#ifndef NPUSHMEM_TYPED_CTX
#define NPUSHMEM_TYPED_CTX(...)
#endif
#ifndef NPUSHMEM_TYPED
#define NPUSHMEM_TYPED(...)
#endif
#ifndef NPUSHMEM_SIZED_CTX
#define NPUSHMEM_SIZED_CTX(...)
#endif
#ifndef NPUSHMEM_SIZED
#define NPUSHMEM_SIZED(...)
#endif
#ifndef NPUSHMEM_UNTYPED_CTX
#define NPUSHMEM_UNTYPED_CTX(...)
#endif
#ifndef NPUSHMEM_PLAIN
#define NPUSHMEM_PLAIN(...)
#endif
#ifndef NPUSHMEM_OLD_REDUCTION
#define NPUSHMEM_OLD_REDUCTION(...)
#endif
#ifndef NPUSHMEM_OLD_ATOMIC
#define NPUSHMEM_OLD_ATOMIC(...)
#endif
#ifndef NPUSHMEM_OLD_WAIT
#define NPUSHMEM_OLD_WAIT(...)
#endif
#ifndef NPUSHMEM_OLD_WAIT_UNTIL
#define NPUSHMEM_OLD_WAIT_UNTIL(...)
#endif

#ifdef NPUSHMEM_ONLY
#include NPUSHMEM_ONLY
#else
#include "npushmem/functions/active_sets.h"
#include "npushmem/functions/atomics.h"
#include "npushmem/functions/collectives.h"
#include "npushmem/functions/deprecated.h"
#include "npushmem/functions/rma.h"
#include "npushmem/functions/setup.h"
#include "npushmem/functions/teams.h"
#include "npushmem/functions/waits.h"
#endif

#undef NPUSHMEM_RMA_TYPES
#undef NPUSHMEM_ATOMIC_TYPES
#undef NPUSHMEM_EXTENDED_ATOMIC_TYPES
#undef NPUSHMEM_BITWISE_TYPES
#undef NPUSHMEM_BITWISE_REDUCTION_TYPES
#undef NPUSHMEM_ARITHMETIC_REDUCTION_TYPES
#undef NPUSHMEM_TYPED_CTX
#undef NPUSHMEM_TYPED
#undef NPUSHMEM_SIZED_CTX
#undef NPUSHMEM_SIZED
#undef NPUSHMEM_UNTYPED_CTX
#undef NPUSHMEM_PLAIN
#undef NPUSHMEM_OLD_REDUCTION
#undef NPUSHMEM_OLD_ATOMIC
#undef NPUSHMEM_OLD_WAIT
#undef NPUSHMEM_OLD_WAIT_UNTIL
