/* npushmem: communication of mixture-of-experts layers, for programs that have no kernels of their own.
 *
 * A layer's experts are spread over the PEs (ranks) in contiguous, nearly equal blocks: with E experts on R PEs the
 * first E % R PEs hold E / R + 1 experts each, the others E / R. Every PE owns some tokens; a router has chosen top_k
 * experts and weights for each. After the experts have run, PE p holds x, one row of `hidden` elements for each (token,
 * choice) that went to one of its experts. The combine brings every row back to the token's PE and adds up
 *
 *     out[token][c] = sum over k = 0 .. top_k-1, in this order, in float:  weight[token][k] * row(token, k)[c]
 *
 * rounded once to the output type. The result does not depend on timing: the same input gives the same bits.
 *
 *     npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
 *     config.experts = 256; config.top_k = 8; config.hidden = 7168; config.max_tokens = 128; config.capacity = 4096;
 *     npushmemx_moe_t* moe;
 *     if (npushmemx_moe_create(&config, &moe) != 0) return 1;   // npushmemx_last_error() gives the reason
 *     void* x;
 *     npushmemx_moe_plan_t plan;
 *     npushmemx_moe_dispatch(moe, tokens, in, expert_ids, weights, &x);
 *     npushmemx_moe_get_plan(moe, &plan);                       // which rows of x are for which expert
 *     run_experts(&plan, x);                                    // the program's own; the result replaces the rows of x
 *     npushmemx_moe_combine(moe, x, out);                       // and so on, for as many calls as wanted
 *     npushmemx_moe_destroy(moe);
 *
 * A program that moves its tokens to the experts by other means gives the routing alone, by npushmemx_moe_set_routing,
 * instead of the dispatch. Several layers may be under way at a time: each has a handle, with memory of its own. The
 * forms _nbi start a dispatch or a combine and return, and npushmemx_moe_wait gives its result:
 *
 *     for (int i = 0; i < 2; ++i) npushmemx_moe_dispatch_nbi(moe[i], tokens, in[i], expert_ids[i], weights[i], &x[i]);
 *     npushmemx_moe_wait(moe[0]);  run_experts_of(moe[0], x[0]);  npushmemx_moe_combine_nbi(moe[0], x[0], out[0]);
 *     npushmemx_moe_wait(moe[1]);  run_experts_of(moe[1], x[1]);  npushmemx_moe_combine_nbi(moe[1], x[1], out[1]);
 *     npushmemx_moe_wait(moe[0]);  npushmemx_moe_wait(moe[1]);
 *
 * Functions that return int return 0 or a code of npushmem/plugin/abi.h; npushmemx_moe_error gives the text, with the
 * expert, rank and value concerned, and npushmemx_last_error as well. Collective functions must be called by all PEs,
 * those of all handles in the same order. A handle must not be used by two threads at once; different handles may.
 *
 * Errors: a code, as above; what is refused collectively is refused on all PEs.
 *
 * Ordering: dispatch and combine order nothing but their own rows; what they have brought is complete on return.
 *
 * Parameters: handle: of this layer; config: made by NPUSHMEMX_MOE_CONFIG_INITIALIZER; tokens: this PE's; expert_ids,
 * weights: [tokens, top_k]; offset_table, length_table, slots, rows: as npushmemx_moe_plan_t has them; plan: receives
 * where each row goes; traffic: receives what flow control has cost; in: [tokens, hidden]; x: the rows of this PE's
 * experts; out: one row for each token. */
#ifndef NPUSHMEM_MOE_H
#define NPUSHMEM_MOE_H

#include <stdint.h>

#include "npushmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. */
#define NPUSHMEMX_MOE_BF16 1
#define NPUSHMEMX_MOE_HALF 2
#define NPUSHMEMX_MOE_FLOAT 3

/* Modes, with the same result bit for bit. Direct: rows go straight into their slots at the receiver. Stream: rows go
 * through a ring of about 256 KiB per pair of PEs, and the receiver puts them into slots of its own; refused as not
 * supported, in set_plan, for rows of a fragment in another order than that of the slots. Chunked: as stream, 256
 * tokens of each PE at a time, added up before the next: the receive memory is that of 256 tokens, and a ring holds two
 * such chunks. Other values are refused. */
#define NPUSHMEMX_MOE_DIRECT 0
#define NPUSHMEMX_MOE_CHUNKED 1
#define NPUSHMEMX_MOE_STREAM 2

/* Where the rings of modes stream and chunked lie: in the memory of the PE to which the rows go, or in that of the PE
 * that sends them, from which the other pulls them. The result is the same; all PEs must choose the same. */
#define NPUSHMEMX_MOE_RING_AT_RECEIVER 0
#define NPUSHMEMX_MOE_RING_AT_SENDER 1

/* How rows are copied in mode direct, and by dispatch; the other modes have one way. All give the same result; each PE
 * may choose for itself.
 */
#define NPUSHMEMX_MOE_COPY_AUTO 0      /* by the sizes and this machine's caches */
#define NPUSHMEMX_MOE_COPY_STAGED 1    /* through the unified buffer, as on a device */
#define NPUSHMEMX_MOE_COPY_ORDINARY 2  /* straight to the slot, ordinary stores */
#define NPUSHMEMX_MOE_COPY_STREAMING 3 /* straight to the slot, stores that go past the caches */

typedef struct npushmemx_moe npushmemx_moe_t; /* opaque */

typedef struct npushmemx_moe_config {
    uint32_t struct_size; /* sizeof(npushmemx_moe_config_t) */
    int32_t experts;      /* of the layer, over all PEs; at least 1 */
    int32_t top_k;        /* choices per token, 1 to 64 */
    int32_t mode;         /* NPUSHMEMX_MOE_DIRECT, _CHUNKED or _STREAM */
    int64_t hidden;       /* elements of a row; at least 1, any number */
    int64_t max_tokens;   /* of one PE in one call; sizes the receive memory */
    int32_t input_type;   /* of x, and of what dispatch takes */
    int32_t output_type;  /* of out */
    int32_t copy;         /* NPUSHMEMX_MOE_COPY_...; other values are refused */
    int32_t audit;        /* not 0: count the rows put into every slot and check the counts after each call (slow) */
    int64_t timeout_ns;   /* longest wait for another PE; 0: NPUSHMEM_TIMEOUT */
    int64_t capacity; /* most rows that a dispatch may bring to one PE, to 2^31 - 1; 0: no dispatch, no memory for it */
    int32_t ring;     /* NPUSHMEMX_MOE_RING_... */
} npushmemx_moe_config_t;

#define NPUSHMEMX_MOE_CONFIG_INITIALIZER                                                                          \
    {                                                                                                             \
        sizeof(npushmemx_moe_config_t), 0, 0, NPUSHMEMX_MOE_DIRECT, 0, 0, NPUSHMEMX_MOE_BF16, NPUSHMEMX_MOE_BF16, \
            NPUSHMEMX_MOE_COPY_AUTO, 0, 0, 0, NPUSHMEMX_MOE_RING_AT_RECEIVER                                      \
    }

/* What x looks like on this PE. The tables are int32 [local_experts, ranks], row-major; x is expert-major, inside
 * an expert ordered by the rank that owns the token, inside that by token and choice. Valid until the next set_routing,
 * set_plan, dispatch, reset or destroy. */
typedef struct npushmemx_moe_plan {
    int32_t local_experts;
    int32_t first_expert; /* global number of local expert 0 */
    int32_t ranks;
    int32_t copy;                /* the way of copying in use, never AUTO */
    int64_t rows;                /* of x */
    int64_t tokens;              /* of this PE: rows of out */
    const int32_t* offset_table; /* first row in x of the fragment (expert, rank) */
    const int32_t* length_table; /* its number of rows */
    const uint32_t* slots;       /* [rows] token * top_k + k at the rank that the row goes to */
} npushmemx_moe_plan_t;

/* What the flow control of this PE's combines has cost, since create or reset. */
typedef struct npushmemx_moe_traffic {
    uint64_t calls;   /* of combine */
    uint64_t signals; /* mode direct: words stored, one per PE and call */
    uint64_t tails;   /* modes stream and chunked: words stored by the sender, one per batch of about 64 KiB of rows */
    uint64_t heads;   /* and by the receiver */
    uint64_t splits;  /* batches that went across a ring's end */
    uint64_t waits;   /* how often a sender waited for room, or a receiver for rows; of mapped PEs */
} npushmemx_moe_traffic_t;

/* Collective. Compares the configurations of all PEs, then takes symmetric memory: two buffers of max_tokens * top_k
 * rows (mode chunked: of those of a chunk), so that consecutive calls need neither clearing nor a barrier between them;
 * in the other modes the rings, too; with a capacity that many rows more. On failure *handle is NULL, on every PE. */
NPUSHMEM_API int npushmemx_moe_create(const npushmemx_moe_config_t* config, npushmemx_moe_t** handle);

/* Collective. This PE's tokens, 0 to max_tokens: expert_ids and weights [tokens, top_k], both copied. An id of -1 means
 * "no expert"; its weight is ignored. Refused on all PEs if any PE's ids are outside -1..experts-1; the routing before
 * stays. */
NPUSHMEM_API int npushmemx_moe_set_routing(npushmemx_moe_t* handle, int64_t tokens, const int32_t* expert_ids,
                                           const float* weights);

/* Collective, after set_routing and until the next, or a dispatch: tables of the caller's own, for an x of `rows` rows
 * laid out otherwise (gaps, another order). Refused on all PEs if any PE's tables point outside x, overlap, exceed the
 * capacity of a rank, or disagree with the routing that the rank gave. The arrays are copied. */
NPUSHMEM_API int npushmemx_moe_set_plan(npushmemx_moe_t* handle, const int32_t* offset_table,
                                        const int32_t* length_table, const uint32_t* slots, int64_t rows);

/* Not collective. */
NPUSHMEM_API int npushmemx_moe_get_plan(const npushmemx_moe_t* handle, npushmemx_moe_plan_t* plan);

/* Not collective; not while a combine is under way. */
NPUSHMEM_API int npushmemx_moe_get_traffic(const npushmemx_moe_t* handle, npushmemx_moe_traffic_t* traffic);

/* Collective. Brings the row of each of this PE's tokens, 0 to max_tokens, to every expert that it has chosen, and does
 * what set_routing does: -1 is no expert, all is copied, get_plan then says which rows of x are for which expert. *x
 * receives where they lie, [plan.rows, hidden], in symmetric memory of the handle; the program may work there and
 * give it to combine, until the next dispatch. x itself may be NULL.
 *
 * Refused on all PEs, before a row moves, and *x left alone, if any PE's ids are outside -1..experts-1 or its `in` is
 * NULL, not aligned, or in the handle's memory, and if more rows would come to a PE than `capacity`; the routing
 * before, and its x, stay. A PE that does not come in time makes the call fail on the others, as in combine. */
NPUSHMEM_API int npushmemx_moe_dispatch(npushmemx_moe_t* handle, int64_t tokens, const void* in,
                                        const int32_t* expert_ids, const float* weights, void** x);

/* Collective. x: [plan.rows, hidden], out: [plan.tokens, hidden], aligned to their elements, in any memory; they must
 * not overlap. Returns when out is complete and x may be changed; other PEs may still be at work on theirs.
 *
 * A PE whose combine is refused or fails, or whose dispatch fails under way (and is not refused), tells the others:
 * their calls that need it, combine or dispatch, end with its code and reason; where several fail at once, all return
 * the code and reason of the first. The handle then refuses both, saying why, until a reset or destroy. */
NPUSHMEM_API int npushmemx_moe_combine(npushmemx_moe_t* handle, const void* x, void* out);

/* Collective. Starts what npushmemx_moe_dispatch does, and returns without waiting for other PEs: 0, or the code of
 * what ended it at once. The call is then under way until npushmemx_moe_wait, which returns its result, refusals
 * included; until then `in`, expert_ids, weights and the place that x points to must stay, and *x is set by the wait.
 * Of the other functions only reset and destroy are possible meanwhile, the rest is refused, on this PE, with
 * NPUSHMEM_E_STATE; get_plan and get_traffic are not refused, and say what was before the call or is half-way. Rows for
 * PEs whose memory is not mapped here begin to move in the wait; so do a combine's in modes stream and chunked. */
NPUSHMEM_API int npushmemx_moe_dispatch_nbi(npushmemx_moe_t* handle, int64_t tokens, const void* in,
                                            const int32_t* expert_ids, const float* weights, void** x);

/* Collective. Starts what npushmemx_moe_combine does, in the same way: x and out must stay until npushmemx_moe_wait. */
NPUSHMEM_API int npushmemx_moe_combine_nbi(npushmemx_moe_t* handle, const void* x, void* out);

/* Collective. Waits for what is under way on the handle and returns its result; 0 if nothing is. */
NPUSHMEM_API int npushmemx_moe_wait(npushmemx_moe_t* handle);

/* Collective. The handle is as after create, without a routing, whatever has failed before: all PEs are in step again.
 * Fails if not all PEs come. */
NPUSHMEM_API int npushmemx_moe_reset(npushmemx_moe_t* handle);

/* Text of the handle's most recent failure, "" if there was none; valid until the next call on the handle. */
NPUSHMEM_API const char* npushmemx_moe_error(const npushmemx_moe_t* handle);

/* Collective. NULL does nothing. */
NPUSHMEM_API void npushmemx_moe_destroy(npushmemx_moe_t* handle);

#ifdef __cplusplus
}
#endif
#endif
