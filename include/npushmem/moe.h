/* SPDX-License-Identifier: BSD-3-Clause */
/* npushmem: communication of mixture-of-experts layers, for programs without kernels of their own.
 *
 * A layer's experts are spread over the PEs (ranks) in contiguous, nearly equal blocks: with E experts on R PEs the
 * first E % R PEs hold E / R + 1 experts each, the others E / R. Every PE owns some tokens; a router has chosen top_k
 * experts and weights for each. After the experts have run, PE p holds x, one row of `hidden` elements for each (token,
 * choice) that went to one of its experts. The combine returns every row to the token's PE and computes
 *
 *     out[token][c] = sum over k = 0 .. top_k-1, in this order, in float:  weight[token][k] * row(token, k)[c]
 *
 * rounded once to the output type. The result does not depend on timing: equal input gives equal bits.
 *
 * With config.rows = NPUSHMEMX_MOE_ROW_PER_RANK a token's row travels once to each PE that holds any of its experts,
 * and one row returns from each. That is fewer rows: with top_k 8 on 2 PEs at most 2 instead of 8. The PE of the
 * experts adds up their rows, and the token's PE adds up the rows of the PEs:
 *
 *     rank_row[r][c] = sum over the choices k of PE r, ascending, in float:  weight[token][k] * row(token, k)[c]
 *     out[token][c]  = sum over the PEs r with such choices, ascending, in float:  rank_row[r][c]
 *
 * Where PEs of one host map each other's memory, and the token's PE maps that of none of them, dispatch sends the row
 * once to that host: to one of the PEs, from which the others copy it. Its PEs thus also wait for each other.
 *
 * Both sums begin at 0. rank_row is rounded once to the input type, out once to the output type. So the result differs
 * from that of one row per choice, but it also is the same on every transport, in every mode and with every number of
 * cores. npushmemx_moe_get_received gives the received row of each row that an expert computes.
 *
 *     npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
 *     config.experts = 256; config.top_k = 8; config.hidden = 7168; config.max_tokens = 128; config.capacity = 4096;
 *     npushmemx_moe_t* moe;
 *     if (npushmemx_moe_create(&config, &moe) != 0) return 1;   // npushmemx_last_error() gives the reason
 *     void* x;
 *     npushmemx_moe_plan_t plan;
 *     npushmemx_moe_dispatch(moe, tokens, in, expert_ids, weights, &x);
 *     npushmemx_moe_get_plan(moe, &plan);                       // the rows of x for each expert
 *     run_experts(&plan, x);                                    // the program's function; it replaces the rows of x
 *     npushmemx_moe_combine(moe, x, out);                       // and so on, any number of calls
 *     npushmemx_moe_destroy(moe);
 *
 * The routing of a call can be kept as a layout, for later calls on the same tokens (npushmemx_moe_get_layout): rows go
 * the same ways without counts and tables, and gradients come back:
 *
 *     npushmemx_moe_layout_t* layout;
 *     npushmemx_moe_get_layout(moe, &layout);  // forward; rows: a copy of what the combine gets. Other layers follow.
 *     npushmemx_moe_set_layout(moe, layout);   // backward
 *     npushmemx_moe_get_plan(moe, &plan);
 *     npushmemx_moe_combine_backward(moe, grad_out, rows, grad_rows, grad_weights);
 *     run_experts_backward(&plan, grad_rows);  // the program's function, in place
 *     npushmemx_moe_dispatch_backward(moe, grad_rows, grad_in);
 *     npushmemx_moe_layout_destroy(layout);
 *
 * A program that moves its tokens to the experts by other means calls npushmemx_moe_set_routing instead of the
 * dispatch. Several layers may run at the same time: each has its own handle, with its own memory. The forms _nbi start
 * a dispatch or a combine and return; npushmemx_moe_wait returns its result:
 *
 *     for (int i = 0; i < 2; ++i) npushmemx_moe_dispatch_nbi(moe[i], tokens, in[i], expert_ids[i], weights[i], &x[i]);
 *     npushmemx_moe_wait(moe[0]);  run_experts_of(moe[0], x[0]);  npushmemx_moe_combine_nbi(moe[0], x[0], out[0]);
 *     npushmemx_moe_wait(moe[1]);  run_experts_of(moe[1], x[1]);  npushmemx_moe_combine_nbi(moe[1], x[1], out[1]);
 *     npushmemx_moe_wait(moe[0]);  npushmemx_moe_wait(moe[1]);
 *
 * Functions that return int return 0 or a code of npushmem/plugin/abi.h; npushmemx_moe_error and npushmemx_last_error
 * return the text, with the expert, rank and value concerned. All PEs must call the collective functions of all handles
 * in the same order. Only one thread at a time may use a handle; several threads may use different handles at the same
 * time, except for create, set_routing, set_plan, set_layout, reset, mask_ranks and destroy, which synchronise the
 * team.
 *
 * Rows can travel quantized, with one byte per element and scales (npushmemx_moe_quantize): with config.dispatch_type
 * to the experts, with config.combine_type back to their tokens. In a combine, row(token, k) or rank_row is then what
 * its receiver reads of the quantized row: each element times its scale, in float. With one row per rank the sums are
 * quantized in float, instead of being rounded to the input type. This saves bytes on networks; where memory is shared
 * the conversions of a combine cost more than the bytes.
 *
 * The ranks of a layer are the PEs of config.team, by default all. Create and destroy take and free symmetric memory,
 * so all PEs of the world call them at the same time, each with its own team and equal sizes (expert parallelism inside
 * groups); the other functions are collective over the team. After a death (npushmemx_team_shrink) the living make new
 * layers on the team of themselves, and need only each other: experts, rows and ranks are then spread over that team.
 * The team lives longer than the handle. Kernels of layers on other teams than the world are not checked. Or the living
 * keep their handles and their experts, and mask the dead (npushmemx_moe_mask_ranks).
 *
 * Errors: a code, as above. If one PE rejects a collective call, all PEs reject it, except where its text says
 * otherwise.
 *
 * Ordering: dispatch and combine order only their own rows; all rows they deliver are complete on return.
 *
 * Parameters: handle: the layer's handle; config: initialised with NPUSHMEMX_MOE_CONFIG_INITIALIZER; tokens: number of
 * this PE's tokens; expert_ids, weights: [tokens, top_k]; offset_table, length_table, slots, rows: as in
 * npushmemx_moe_plan_t; plan: receives the destination of each row; received: receives the rows of a dispatch; traffic:
 * receives the flow control counters; in: the rows to send or to convert, one for each token; x: the rows of this PE's
 * experts; quantized: rows of config.dispatch_type; out: the rows that a call makes; team: the living ranks;
 * substitutes: for each expert, the one that replaces it; layout: the routing of a call; grad_out, grad_x, grad_in,
 * grad_weights: gradients of out, x, in and weights. */
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

/* Types of quantized rows, which a dispatch can bring, and a combine return, instead of rows of the input type: one
 * byte per element, with scales. E4M3 and E5M2: OCP 8-bit Floating Point Specification, revision 1.0. */
#define NPUSHMEMX_MOE_E4M3 4
#define NPUSHMEMX_MOE_E5M2 5
#define NPUSHMEMX_MOE_INT8 6

/* The rows that a dispatch gets: of input_type, which it quantizes if dispatch_type is not 0, or already quantized ones
 * (npushmemx_moe_quantize). */
#define NPUSHMEMX_MOE_INPUT_TYPE 0
#define NPUSHMEMX_MOE_INPUT_QUANTIZED 1

/* Modes. All give the same result, bit for bit. Direct: the sender puts rows directly into their slots at the receiver.
 * Stream: rows go through a ring of about 256 KiB per pair of PEs, and the receiver puts them into its slots; set_plan
 * fails with NPUSHMEM_E_UNSUPPORTED if the rows of a fragment are not in the order of their slots. Chunked: like
 * stream, but for 256 tokens of each PE at a time, which are added up before the next 256: the receive memory is that
 * of 256 tokens, and a ring holds two such chunks. Other values are rejected. */
#define NPUSHMEMX_MOE_DIRECT 0
#define NPUSHMEMX_MOE_CHUNKED 1
#define NPUSHMEMX_MOE_STREAM 2

/* Place of the rings in modes stream and chunked: the memory of the receiving PE, or the memory of the sending PE, from
 * which the receiver pulls the rows. The result is the same. All PEs must choose the same place. */
#define NPUSHMEMX_MOE_RING_AT_RECEIVER 0
#define NPUSHMEMX_MOE_RING_AT_SENDER 1

/* Copy routes in mode direct and in dispatch. The other modes have one route, in which a receiver puts rows into its
 * slots; with STREAMING it does so by such stores. All give the same result; each PE may choose its own. */
#define NPUSHMEMX_MOE_COPY_AUTO                                              \
    0 /* chosen by sizes and cache; a combine in mode direct copies no rows, \
         where it can leave them in place (npushmemx_moe_combine) */
#define NPUSHMEMX_MOE_COPY_STAGED \
    1 /* through the unified buffer, as on a device; in mode direct so are sums, if not quantized */
#define NPUSHMEMX_MOE_COPY_ORDINARY 2 /* directly to the slot, ordinary stores */
#define NPUSHMEMX_MOE_COPY_STREAMING                                      \
    3 /* directly to the slot, stores that bypass the caches; rows that a \
         combine quantizes have ordinary stores */

/* As capacity: fixed slots (npushmemx_moe_dispatch). */
#define NPUSHMEMX_MOE_FIXED_SLOTS (-1)

/* The rows that travel: one for each choice of a token, or one for each PE that holds any of the token's experts. All
 * PEs must choose the same. */
#define NPUSHMEMX_MOE_ROW_PER_CHOICE 0
#define NPUSHMEMX_MOE_ROW_PER_RANK 1

typedef struct npushmemx_moe npushmemx_moe_t;               /* opaque */
typedef struct npushmemx_moe_layout npushmemx_moe_layout_t; /* opaque */

typedef struct npushmemx_moe_config {
    uint32_t struct_size; /* sizeof(npushmemx_moe_config_t) */
    int32_t experts;      /* experts of the layer, over all PEs; at least 1 */
    int32_t top_k;        /* choices per token, 1 to 64 */
    int32_t mode;         /* NPUSHMEMX_MOE_DIRECT, _CHUNKED or _STREAM */
    int64_t hidden;       /* elements of a row; at least 1, any number */
    int64_t max_tokens;   /* maximum of one PE in one call; determines the size of the receive memory */
    int32_t input_type;   /* element type of x, and of the input of dispatch */
    int32_t output_type;  /* element type of out */
    int32_t copy;         /* NPUSHMEMX_MOE_COPY_...; other values are rejected */
    int32_t audit;        /* not 0: counts the rows put into every slot, and checks the counts after each call (slow) */
    int64_t timeout_ns;   /* longest wait for another PE; 0: NPUSHMEM_TIMEOUT */
    int64_t capacity; /* maximum rows that one PE receives in a dispatch, up to 2^31 - 1, with one row per rank up to
                         (2^31 - 1) / top_k; with one row per choice the gaps of expert_alignment count; 0: no dispatch
                         and no memory for it; NPUSHMEMX_MOE_FIXED_SLOTS */
    int32_t ring;     /* NPUSHMEMX_MOE_RING_... */
    npushmem_team_t team;     /* the PEs of the layer: rank r is PE r of the team, also in messages */
    int32_t rows;             /* NPUSHMEMX_MOE_ROW_PER_...; other values are rejected */
    int32_t dispatch_type;    /* type of the rows of a dispatch; 0: input_type */
    int32_t dispatch_input;   /* NPUSHMEMX_MOE_INPUT_...; other values are rejected */
    int32_t scale_block;      /* elements of a quantized row that share a scale; 0: 128; hidden or more: one per row */
    int32_t combine_type;     /* type of the rows that a combine returns to the PEs of their tokens; 0: input_type */
    int32_t expert_alignment; /* 1 to 2^20; the rows of each expert begin in x at a multiple of it; 0: 1 */
} npushmemx_moe_config_t;

#define NPUSHMEMX_MOE_CONFIG_INITIALIZER                                                                          \
    {                                                                                                             \
        sizeof(npushmemx_moe_config_t), 0, 0, NPUSHMEMX_MOE_DIRECT, 0, 0, NPUSHMEMX_MOE_BF16, NPUSHMEMX_MOE_BF16, \
            NPUSHMEMX_MOE_COPY_AUTO, 0, 0, 0, NPUSHMEMX_MOE_RING_AT_RECEIVER, NPUSHMEM_TEAM_WORLD,                \
            NPUSHMEMX_MOE_ROW_PER_CHOICE, 0, NPUSHMEMX_MOE_INPUT_TYPE, 0, 0, 0                                    \
    }

/* Layout of x on this PE. The tables are int32 [local_experts, ranks], row-major; x is expert-major, inside
 * an expert ordered by the rank that owns the token, inside that by token and choice. With an expert_alignment or fixed
 * slots x has gaps: rows of no fragment, whose values are unspecified and unused. Valid until the next set_routing,
 * set_plan, set_layout, dispatch, reset or destroy. */
typedef struct npushmemx_moe_plan {
    int32_t local_experts;
    int32_t first_expert; /* global number of local expert 0 */
    int32_t ranks;
    int32_t copy;                /* the copy route of rows that return and do not stay in place, never AUTO */
    int64_t rows;                /* of x */
    int64_t tokens;              /* of this PE: rows of out */
    const int32_t* offset_table; /* first row in x of the fragment (expert, rank) */
    const int32_t* length_table; /* its number of rows */
    const uint32_t* slots;       /* [rows] token * top_k + k at the rank that the row goes to; 2^32 - 1 in gaps */
} npushmemx_moe_plan_t;

/* The received rows of a layer with one row per rank: row row_index[i] of x is the input of the expert that computes
 * row i of the plan. x is ordered by the rank that owns the token, inside that by token. Valid as long as the plan. */
typedef struct npushmemx_moe_received {
    int64_t rows;             /* of x: one for each (token, rank) with an expert here; with fixed slots, all slots */
    const void* x;            /* the rows of the last dispatch, each of npushmemx_moe_row_bytes, in symmetric memory;
                                 NULL without a capacity */
    const int32_t* row_index; /* [plan.rows]; -1: a row of no fragment */
    const float* weights;     /* [plan.rows] of the choice; combine applies them */
} npushmemx_moe_received_t;

/* Flow control counters of this PE's combines, since create or reset. */
typedef struct npushmemx_moe_traffic {
    uint64_t calls;   /* of combine */
    uint64_t signals; /* mode direct: words stored to announce rows, one per PE and call */
    uint64_t tails;   /* modes stream and chunked: words stored by the sender, one per batch of about 64 KiB of rows */
    uint64_t heads;   /* and by the receiver */
    uint64_t splits;  /* batches across a ring's end */
    uint64_t waits;   /* waits of a sender for room, or of a receiver for rows; mapped PEs only */
} npushmemx_moe_traffic_t;

/* Collective. Compares the configurations of all PEs, then takes symmetric memory: two buffers of max_tokens * top_k
 * rows, with one row per rank of max_tokens * min(top_k, ranks) rows (in mode chunked, of the rows of a chunk), so that
 * consecutive calls need neither clearing nor a barrier between them; in modes stream and chunked also the rings; with
 * a capacity also that many rows of the dispatch, with fixed slots twice local_experts * ranks * max_tokens rows, or
 * with one row per rank twice ranks * max_tokens. If the dispatch quantizes, create also takes private memory for
 * max_tokens quantized rows. A layer in mode direct without an audit and without combine_type takes up to 400 + 8 *
 * local_experts bytes more for each rank. Combines that send sums or quantized rows staged, or to PEs
 * whose memory is not mapped, also take private memory for the rows they send, and for quantized sums a row of floats
 * for each core; it grows as needed, and without it a combine fails with NPUSHMEM_E_MEMORY. On failure *handle is NULL,
 * on every PE. */
NPUSHMEM_API int npushmemx_moe_create(const npushmemx_moe_config_t* config, npushmemx_moe_t** handle);

/* Collective. Sets the routing of this PE's tokens, 0 to max_tokens of them: expert_ids and weights [tokens, top_k],
 * both copied. An id of -1 means "no expert"; its weight is ignored. Rejected on all PEs if any PE's ids are outside
 * -1..experts-1; the previous routing stays. */
NPUSHMEM_API int npushmemx_moe_set_routing(npushmemx_moe_t* handle, int64_t tokens, const int32_t* expert_ids,
                                           const float* weights);

/* Collective. Sets the caller's own tables, for an x of `rows` rows with another layout (gaps, another order). Call it
 * after set_routing; the tables hold until the next set_routing, set_layout or dispatch. Fails with NPUSHMEM_E_STATE
 * after a dispatch or a set_layout. Rejected on all PEs if any PE's tables point outside x, overlap, exceed the
 * capacity of a rank, or disagree with that rank's routing. The arrays are copied.
 */
NPUSHMEM_API int npushmemx_moe_set_plan(npushmemx_moe_t* handle, const int32_t* offset_table,
                                        const int32_t* length_table, const uint32_t* slots, int64_t rows);

/* Not collective. Returns the current plan. */
NPUSHMEM_API int npushmemx_moe_get_plan(const npushmemx_moe_t* handle, npushmemx_moe_plan_t* plan);

/* Not collective. rows: [plan.local_experts]; receives the number of rows of each expert of this PE. Without tables of
 * set_plan the first row of expert e has the index offset_table[e * ranks] in x, and the others follow, with fixed
 * slots with gaps. */
NPUSHMEM_API int npushmemx_moe_get_expert_rows(const npushmemx_moe_t* handle, int64_t* rows);

/* Not collective. Returns the received rows and their relation to the rows of the plan. Fails with
 * NPUSHMEM_E_UNSUPPORTED on a handle with one row per choice. */
NPUSHMEM_API int npushmemx_moe_get_received(const npushmemx_moe_t* handle, npushmemx_moe_received_t* received);

/* Not collective. Returns the bytes of a row of x after a dispatch, or 0 for a NULL handle. */
NPUSHMEM_API int64_t npushmemx_moe_row_bytes(const npushmemx_moe_t* handle);

/* Not collective. Quantizes `rows` rows of input_type, [rows, hidden], as a dispatch with config.dispatch_type does.
 * Quantized rows have npushmemx_moe_row_bytes bytes: `hidden` elements, zeros up to a multiple of 4 bytes, a float for
 * each `scale_block` elements, zeros up to a multiple of 64 bytes. The value of an element is its own times its scale.
 *
 *     scale    largest finite magnitude of the block / M, at least 2^-126, at most the largest float whose product with
 *              M is finite; 1 for a block without finite values but zeros
 *     element  value * (1 / scale) in float, rounded to nearest, ties to even, and at most M
 *
 * M is 448 (E4M3), 57344 (E5M2) or 127 (INT8). So the error of a finite value v is at most |v| / 16 + scale / 1024
 * (E4M3), |v| / 8 + scale / 131072 (E5M2) or scale / 2 (INT8), and |v| * 2^-20 + 2^-149 for the roundings in float.
 * E5M2 keeps infinities and NaNs, E4M3 makes NaNs of both, and for INT8 a block with any has the scale NaN. All CPUs
 * give the same bits.
 *
 * `in` is aligned to its elements, `quantized` to 4 bytes; they must not overlap. Several threads may convert with one
 * handle, also while a call runs. Fails with NPUSHMEM_E_UNSUPPORTED on a handle with dispatch_type 0. */
NPUSHMEM_API int npushmemx_moe_quantize(const npushmemx_moe_t* handle, const void* in, int64_t rows, void* quantized);

/* Not collective. The reverse: element times scale in float, rounded to input_type. `quantized`: rows of
 * npushmemx_moe_row_bytes, aligned to 4 bytes; out: [rows, hidden], aligned to its elements; they must not overlap.
 * Fails like npushmemx_moe_quantize. */
NPUSHMEM_API int npushmemx_moe_dequantize(const npushmemx_moe_t* handle, const void* quantized, int64_t rows,
                                          void* out);

/* Not collective. Returns the flow control counters. Do not call it while a combine runs. */
NPUSHMEM_API int npushmemx_moe_get_traffic(const npushmemx_moe_t* handle, npushmemx_moe_traffic_t* traffic);

/* Collective. Sends the row of each of this PE's tokens, 0 to max_tokens of them, to every expert that the token has
 * chosen, and sets the routing like set_routing: -1 means no expert, the arrays are copied, and get_plan then returns
 * the rows of x for each expert. `in`: [tokens, hidden] of input_type, aligned to its elements. *x receives the address
 * of the rows, [plan.rows, hidden] of input_type, in symmetric memory of the handle. Until the next dispatch the
 * program may work on them in place and pass them to combine. x itself may be NULL.
 *
 * With one row per rank, the rows of *x are copies of the received rows, in memory of the handle that grows as needed.
 * If it cannot grow, the call fails on this PE alone with NPUSHMEM_E_MEMORY; the rows have arrived, as with a NULL x.
 * With a NULL x there is no copy: the experts read the rows of npushmemx_moe_get_received by their indices, and the
 * program passes rows of its own, in the order of the plan, to combine. `capacity` limits the received rows.
 *
 * With a dispatch_type, the rows of *x are quantized rows of npushmemx_moe_row_bytes. Each token is quantized once,
 * before it travels; with NPUSHMEMX_MOE_INPUT_QUANTIZED `in` is [tokens] such rows, aligned to 4 bytes. The rows
 * of *x are no valid input of combine, which rejects an x in that memory: the experts dequantize them, and the program
 * passes rows of input_type.
 *
 * With the capacity NPUSHMEMX_MOE_FIXED_SLOTS each PE has max_tokens slots at each expert, so no counts travel before
 * the rows, and the call waits for the others once instead of twice. offset_table has their first rows: local expert e
 * begins behind the ranks * max_tokens slots of each expert before it, rounded up to a multiple of expert_alignment,
 * and rank r behind max_tokens slots of each rank before it (of the living after a mask). plan.rows counts all slots. A
 * call that needs more of them, because tokens choose an expert more than once, is rejected on all PEs with
 * NPUSHMEM_E_RANGE. There are two such x, which calls use in turn; after a rejected call the rows of the call before
 * may be overwritten. With one row per rank the received rows have such slots, as of one expert per rank; the rows of
 * *x have the places of the plan, without these gaps.
 *
 * Rejected on all PEs, without a change of *x and, but for fixed slots, before any row moves, if any PE's ids are
 * outside -1..experts-1, if its `in` is NULL, not aligned, or in the handle's memory, or if a PE would receive more
 * rows than `capacity`; the previous routing stays, and its x, but for fixed slots. If a PE does not call in time, the
 * call fails on the others, as in combine. */
NPUSHMEM_API int npushmemx_moe_dispatch(npushmemx_moe_t* handle, int64_t tokens, const void* in,
                                        const int32_t* expert_ids, const float* weights, void** x);

/* Not collective. Returns the routing of the last call, with the plan and, after a dispatch, the ways of its rows, for
 * npushmemx_moe_set_layout. It needs no symmetric memory. It stays valid when the handle is destroyed; free it with
 * npushmemx_moe_layout_destroy, before npushmem_finalize. Fails with NPUSHMEM_E_STATE on a handle without a routing,
 * and while a call runs. On failure *layout is NULL. */
NPUSHMEM_API int npushmemx_moe_get_layout(const npushmemx_moe_t* handle, npushmemx_moe_layout_t** layout);

/* Collective. Makes the layout the routing of the handle, like the call that it is from; x of a dispatch stays as it
 * is. All PEs give the layouts of the same call. The layout may be from another handle on the same PEs, with the same
 * experts, top_k, rows and expert_alignment, and both or neither with fixed slots, with an equal max_tokens: for
 * example from one with a dispatch_type, for gradients without. Rejected on all PEs with NPUSHMEM_E_ARGUMENT if any
 * PE's layout is NULL or of another kind, with NPUSHMEM_E_RANGE if its tokens or rows exceed max_tokens or the capacity
 * here, and with NPUSHMEM_E_MISMATCH if the layouts are from different calls; in modes stream and
 * chunked also like set_plan. The routing stays. */
NPUSHMEM_API int npushmemx_moe_set_layout(npushmemx_moe_t* handle, const npushmemx_moe_layout_t* layout);

/* Not collective. NULL does nothing. */
NPUSHMEM_API void npushmemx_moe_layout_destroy(npushmemx_moe_layout_t* layout);

/* Collective. Sends rows like the dispatch, or the layout of a dispatch, that made the current routing: in and *x as
 * there, with plan.tokens tokens. Neither counts nor choices travel, and no table is made. Fails with NPUSHMEM_E_STATE
 * if no dispatch made the routing. Rejected on all PEs, before *x changes, if `in` is invalid on any PE, or with
 * NPUSHMEM_E_MISMATCH if the PEs' routings are from different calls or another PE calls npushmemx_moe_dispatch. */
NPUSHMEM_API int npushmemx_moe_dispatch_cached(npushmemx_moe_t* handle, const void* in, void** x);

/* Collective. x: [plan.rows, hidden] of input_type, out: [plan.tokens, hidden] of output_type, aligned to their
 * elements, in any memory; they must not overlap. Returns when out is complete and x may be changed; other PEs may
 * still be working.
 *
 * Fastest with x in symmetric memory (npushmem_malloc): if all ranks map x, they read its rows there instead of
 * receiving copies, with the same result. That holds for mode direct without an audit, if copy is AUTO on this PE and
 * STAGED on none, for rows of at least 1024 bytes that the combine does not quantize, and without tables of
 * npushmemx_moe_set_plan in another order. The *x of a dispatch is such memory with one row per choice; with one row
 * per rank it is a private copy. Each PE decides for its own x in each call. The call then also waits until all ranks
 * have read this PE's rows, and fails if one of them fails or dies before.
 *
 * A PE whose combine is rejected or fails, or whose dispatch fails (without being rejected), signals this to the
 * others: their calls of combine or dispatch that need it end with its code and reason. If several PEs fail at the same
 * time, all return the code and reason of the first. The handle then rejects both functions with this reason until a
 * reset or destroy. */
NPUSHMEM_API int npushmemx_moe_combine(npushmemx_moe_t* handle, const void* x, void* out);

/* Collective. Starts npushmemx_moe_dispatch and returns without waiting for other PEs: 0, or the code of an immediate
 * error. The call runs until npushmemx_moe_wait, which returns its result, rejections included. Until then `in`,
 * expert_ids, weights and the variable *x must stay valid and unchanged; the wait sets *x. Meanwhile only wait, reset
 * and destroy are allowed. Other functions fail on this PE with NPUSHMEM_E_STATE, except get_plan, get_received,
 * get_expert_rows and get_traffic, which return values from before the call or intermediate ones, and row_bytes,
 * quantize and dequantize. Rows for PEs whose memory is not mapped here move during the wait; so do a combine's rows in
 * modes stream and chunked. */
NPUSHMEM_API int npushmemx_moe_dispatch_nbi(npushmemx_moe_t* handle, int64_t tokens, const void* in,
                                            const int32_t* expert_ids, const float* weights, void** x);

/* Collective. Starts npushmemx_moe_dispatch_cached in the same way. */
NPUSHMEM_API int npushmemx_moe_dispatch_cached_nbi(npushmemx_moe_t* handle, const void* in, void** x);

/* Collective. Starts npushmemx_moe_combine in the same way. x and out must stay valid until npushmemx_moe_wait. */
NPUSHMEM_API int npushmemx_moe_combine_nbi(npushmemx_moe_t* handle, const void* x, void* out);

/* Collective. The gradients of a combine with the current routing, which a dispatch or its layout made, from that of
 * its result. grad_out: [tokens, hidden], x: the rows that the combine got, grad_x: [plan.rows, hidden], all of
 * input_type and aligned to its elements; grad_weights: [tokens, top_k], 0 for absent choices. For row i of token t and
 * choice k:
 *
 *     grad_x[i][c]       = 0 + weight[t][k] * grad_out[t][c]          in float, rounded once to input_type
 *     grad_weights[t][k] = sum over c of x[i][c] * grad_out[t][c]     in double, rounded once to float
 *
 * The products are exact. Eight sums add up the columns c of equal c mod 8, ascending; then sum j adds sum j + 4 for
 * j < 4, sum j + 2 for j < 2, and sum 1 to sum 0. So equal input gives equal bits everywhere. With one row per rank the
 * sums of the ranks count as exact.
 *
 * Rows of grad_x in gaps stay as they are. Overwrites the rows of the dispatch; x, grad_x and grad_weights lie
 * elsewhere, and neither grad_x nor grad_weights overlaps any other array. Fails like npushmemx_moe_dispatch_cached;
 * rejected on all PEs if any PE's arrays are invalid, and with NPUSHMEM_E_UNSUPPORTED on a handle with a dispatch_type.
 */
NPUSHMEM_API int npushmemx_moe_combine_backward(npushmemx_moe_t* handle, const void* grad_out, const void* x,
                                                void* grad_x, float* grad_weights);

/* Collective. The gradient of a dispatch with the current routing, from that of its rows: npushmemx_moe_combine with
 * grad_x as x, grad_in as out, and weights that are all 1. Fails with NPUSHMEM_E_STATE if no dispatch or its layout
 * made the routing. */
NPUSHMEM_API int npushmemx_moe_dispatch_backward(npushmemx_moe_t* handle, const void* grad_x, void* grad_in);

/* Collective. Waits for the running call of the handle and returns its result; 0 if none runs. */
NPUSHMEM_API int npushmemx_moe_wait(npushmemx_moe_t* handle);

/* Collective. Returns the handle to its state after create, without a routing, after any failure: all PEs are in step
 * again. Fails if not all PEs call it. */
NPUSHMEM_API int npushmemx_moe_reset(npushmemx_moe_t* handle);

/* Collective over `team`, the team that npushmemx_team_shrink has made of the layer's team, or of that of the last
 * mask. Masks the ranks that are not in it, after any failure: the layer goes on without them and without a routing.
 * Experts and ranks keep their numbers in arguments and plans, except that messages give the numbers in `team`; a plan
 * has no rows for masked ranks. A choice of an expert of a masked rank counts as a choice of substitutes[expert], an
 * expert of a rank that goes on, or as none if that is -1. substitutes: [experts], copied; NULL: all -1. Each PE may
 * give its own. Weights stay as they are.
 *
 * Frees the layer's memory and takes new memory, so the members of all teams that the living make of the world call it
 * at the same time, as they would create. `team` lives longer than the handle; the layer no longer uses the team
 * before. If another PE dies during the call, it may fail on some PEs with NPUSHMEM_E_PEER_DEAD; after another shrink
 * it is repeated.
 *
 * Fails on all PEs with NPUSHMEM_E_ARGUMENT if any gives a substitute that does not go on, or if no expert does; then
 * only this function and destroy are allowed. Fails on this PE with NPUSHMEM_E_ARGUMENT if a rank outside the team
 * lives, or a member is no rank; nothing changes. */
NPUSHMEM_API int npushmemx_moe_mask_ranks(npushmemx_moe_t* handle, npushmem_team_t team, const int32_t* substitutes);

/* Text of the handle's most recent failure, "" if there was none; valid until the next call on the handle. */
NPUSHMEM_API const char* npushmemx_moe_error(const npushmemx_moe_t* handle);

/* Collective. Frees the handle and its memory. NULL does nothing. */
NPUSHMEM_API void npushmemx_moe_destroy(npushmemx_moe_t* handle);

#ifdef __cplusplus
}
#endif
#endif
