/* SPDX-License-Identifier: BSD-3-Clause */
/* A layer of a mixture of experts. Each PE has some tokens and some of the experts. The dispatch sends each token's row
 * to the two experts that its router has chosen; the experts compute; the combine returns the rows and adds them up
 * with the router's weights.
 *
 * Here expert e multiplies a row by e + 1, and the weights are 0.75 and 0.25, so that every result is exact.
 *
 *     $ npushmem-run -n 4 ./moe_layer
 *     expert 0: 8 rows
 *     expert 1: 8 rows
 *     64 rows of 4 PEs went to 8 experts, 0 results are wrong */
#include <npushmemx.h>
#include <stdint.h>
#include <stdio.h>

enum { experts = 8, top_k = 2, hidden = 256, tokens = 8 };

static float in[tokens][hidden], out[tokens][hidden];
static int32_t expert_ids[tokens][top_k];
static float weights[tokens][top_k];
static long counts[2], totals[2]; /* rows and wrong results; arguments of a reduction */

/* What the router of a model would give: token t of PE `me` goes to two neighbouring experts. */
static void route(int me) {
    for (int t = 0; t < tokens; ++t) {
        for (int c = 0; c < hidden; ++c) in[t][c] = (float)(me * tokens + t);
        for (int k = 0; k < top_k; ++k) expert_ids[t][k] = (me + t + k) % experts;
        weights[t][0] = 0.75F;
        weights[t][1] = 0.25F;
    }
}

/* The plan says which rows of x are for which expert: for each expert of this PE, a fragment from each PE. */
static void run_experts(const npushmemx_moe_plan_t* plan, float (*x)[hidden], int print) {
    for (int e = 0; e < plan->local_experts; ++e) {
        int expert_rows = 0;
        for (int rank = 0; rank < plan->ranks; ++rank) {
            const int fragment = e * plan->ranks + rank;
            const int32_t first = plan->offset_table[fragment];
            const int32_t rows = plan->length_table[fragment];
            for (int32_t row = first; row < first + rows; ++row) {
                for (int c = 0; c < hidden; ++c) x[row][c] *= (float)(plan->first_expert + e + 1);
            }
            expert_rows += rows;
        }
        if (print) printf("expert %d: %d rows\n", plan->first_expert + e, expert_rows);
    }
}

static int fail(const char* operation) {
    const char* reason = "";
    npushmemx_last_error(&reason);
    fprintf(stderr, "PE %d: %s failed: %s\n", npushmem_my_pe(), operation, reason);
    return 1;
}

int main(void) {
    npushmem_init();
    const int me = npushmem_my_pe();
    route(me);

    npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
    config.experts = experts;
    config.top_k = top_k;
    config.hidden = hidden;
    config.max_tokens = tokens;
    config.capacity = (int64_t)tokens * top_k * npushmem_n_pes(); /* every row to one PE: the worst case */
    config.input_type = config.output_type = NPUSHMEMX_MOE_FLOAT;
    npushmemx_moe_t* layer = NULL;
    if (npushmemx_moe_create(&config, &layer) != 0) return fail("create");

    void* x = NULL; /* receives the rows of this PE's experts */
    npushmemx_moe_plan_t plan;
    if (npushmemx_moe_dispatch(layer, tokens, in, expert_ids[0], weights[0], &x) != 0) return fail("dispatch");
    if (npushmemx_moe_get_plan(layer, &plan) != 0) return fail("get_plan");
    run_experts(&plan, x, me == 0);
    if (npushmemx_moe_combine(layer, x, out) != 0) return fail("combine");

    counts[0] = (long)plan.rows;
    for (int t = 0; t < tokens; ++t) {
        const float factor = 0.75F * (float)(expert_ids[t][0] + 1) + 0.25F * (float)(expert_ids[t][1] + 1);
        for (int c = 0; c < hidden; ++c) counts[1] += out[t][c] != factor * in[t][c];
    }
    if (npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, totals, counts, 2) != 0) return fail("sum_reduce");
    if (me == 0) {
        printf("%ld rows of %d PEs went to %d experts, %ld results are wrong\n", totals[0], npushmem_n_pes(), experts,
               totals[1]);
    }
    npushmemx_moe_destroy(layer);
    npushmem_finalize();
    return totals[1] == 0 ? 0 : 1;
}
