/* SPDX-License-Identifier: BSD-3-Clause */
/* The examples of npushmemx.h and npushmem/moe.h, with the surrounding program that they need. Runs under npushmem-run
 * with 3 PEs. Exits with the number of failures. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"

enum { top_k = 8, hidden = 7168, tokens = 2 };

static int failures = 0;

static void check(int ok, const char* what) {
    const char* reason = "";
    if (ok) return;
    ++failures;
    npushmemx_last_error(&reason);
    fprintf(stderr, "PE %d: %s (%s)\n", npushmem_my_pe(), what, reason);
}

/* ---- npushmemx.h: a start without a launcher. Compiled only. ---- */

static void broadcast(void* bytes, size_t count) { memset(bytes, 0, count); }

void start_example(int rank, int nranks);
void start_example(int rank, int nranks) {
#include "npushmemx_1.inc"
}

/* ---- npushmemx.h: a team of any PEs, here of all. ---- */

static uint64_t* shared_id;

/* PE 0 has made the id. */
static void hand_out(npushmemx_team_uniqueid_t* id) {
    if (npushmem_my_pe() == 0) *shared_id = *id;
    check(npushmem_broadcastmem(NPUSHMEM_TEAM_WORLD, shared_id, shared_id, sizeof *shared_id, 0) == 0, "the id");
    *id = *shared_id;
}

static void team_example(int my_index) {
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
#include "npushmemx_2.inc"
    check(npushmem_team_my_pe(team) == my_index, "the number in the team");
    npushmem_team_destroy(team);
}

/* ---- npushmemx.h: the living continue. Here nobody dies. ---- */

static void survive_example(void) {
    npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
#include "npushmemx_3.inc"
    check(npushmemx_last_error(NULL) == 0, "a barrier without deaths");
    check(npushmemx_team_shrink(NPUSHMEM_TEAM_WORLD, &team) == 0, "a shrink without deaths");
    check(npushmem_team_n_pes(team) == npushmem_n_pes(), "all PEs live");
    npushmem_team_destroy(team);
}

/* ---- npushmem/moe.h: rows of ones, as bfloat16, which the experts leave unchanged. The sum of 8 such rows with
 * weights of 1/8 is also one. ---- */

static const uint16_t one = 0x3F80;

/* State of one layer on this PE. */
struct layer {
    uint16_t in[tokens * hidden];
    uint16_t out[tokens * hidden];
    int32_t expert_ids[tokens * top_k];
    float weights[tokens * top_k];
};

static void fill(struct layer* layer) {
    memset(layer, 0, sizeof *layer);
    for (int i = 0; i < tokens * hidden; ++i) layer->in[i] = one;
    for (int i = 0; i < tokens * top_k; ++i) {
        layer->expert_ids[i] = i * 16;
        layer->weights[i] = 1.0F / top_k;
    }
}

static void check_ones(const uint16_t* rows, int64_t count, const char* what) {
    int64_t i = 0;
    while (i < count && rows[i] == one) ++i;
    check(i == count, what);
}

static void run_experts(const npushmemx_moe_plan_t* plan, const void* x) {
    check_ones(x, plan->rows * hidden, "the rows of x");
}

static void run_experts_of(npushmemx_moe_t* moe, const void* x) {
    npushmemx_moe_plan_t plan;
    check(npushmemx_moe_get_plan(moe, &plan) == 0, "the plan");
    run_experts(&plan, x);
}

static int one_call(const void* in, const int32_t* expert_ids, const float* weights, void* out) {
#include "moe_1.inc"
    return 0;
}

/* The experts leave rows unchanged, and so gradients. */
static void run_experts_backward(const npushmemx_moe_plan_t* plan, const void* rows) {
    check(plan->rows == 0 || rows != NULL, "rows with gradients");
}

static void gradients(npushmemx_moe_t* moe, const void* grad_out, void* grad_in, float* grad_weights) {
    npushmemx_moe_plan_t plan;
    check(npushmemx_moe_get_plan(moe, &plan) == 0, "the plan");
    const size_t bytes = (size_t)plan.rows * hidden * sizeof one;
    uint16_t* rows = malloc(bytes + 1);
    uint16_t* grad_rows = malloc(bytes + 1);
    check(rows != NULL && grad_rows != NULL, "memory");
    if (rows != NULL && grad_rows != NULL) {
        for (int64_t i = 0; i < plan.rows * hidden; ++i) rows[i] = one;
#include "moe_2.inc"
    }
    free(grad_rows);
    free(rows);
}

static void two_calls(npushmemx_moe_t* const* moe, const void* const* in, const int32_t* const* expert_ids,
                      const float* const* weights, void* const* out) {
    void* x[2];
#include "moe_3.inc"
}

static void one_layer_example(void) {
    static struct layer layer;
    fill(&layer);
    check(one_call(layer.in, layer.expert_ids, layer.weights, layer.out) == 0, "the layer");
    check_ones(layer.out, tokens * hidden, "the sums of the layer");
}

static void two_layers_example(void) {
    static struct layer layers[2];
    npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
    npushmemx_moe_t* moe[2];
    const void* in[2] = {layers[0].in, layers[1].in};
    const int32_t* expert_ids[2] = {layers[0].expert_ids, layers[1].expert_ids};
    const float* weights[2] = {layers[0].weights, layers[1].weights};
    void* out[2] = {layers[0].out, layers[1].out};
    config.experts = 256;
    config.top_k = top_k;
    config.hidden = hidden;
    config.max_tokens = tokens;
    config.capacity = 1000;
    for (int i = 0; i < 2; ++i) {
        fill(&layers[i]);
        check(npushmemx_moe_create(&config, &moe[i]) == 0, "one of two layers");
    }
    if (failures == 0) two_calls(moe, in, expert_ids, weights, out);
    if (failures == 0) {
        /* Each of the 8 rows of a token has 1/8 of its gradient, one; a weight has that of each of 7168 columns. */
        static uint16_t grad_in[tokens * hidden];
        static float grad_weights[tokens * top_k];
        gradients(moe[0], layers[1].in, grad_in, grad_weights);
        check_ones(grad_in, tokens * hidden, "the gradients of the tokens");
        for (int i = 0; i < tokens * top_k; ++i) check(grad_weights[i] == hidden, "the gradient of a weight");
    }
    for (int i = 0; i < 2; ++i) {
        check_ones(layers[i].out, tokens * hidden, "the sums of one of two layers");
        npushmemx_moe_destroy(moe[i]);
    }
}

int main(void) {
    npushmem_init();
    shared_id = npushmem_malloc(sizeof *shared_id);
    check(shared_id != NULL, "memory");
    if (failures == 0) {
        team_example(npushmem_my_pe());
        survive_example();
        one_layer_example();
        two_layers_example();
    }
    npushmem_free(shared_id);
    npushmem_finalize();
    return failures;
}
