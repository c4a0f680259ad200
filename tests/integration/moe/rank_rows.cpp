// SPDX-License-Identifier: BSD-3-Clause
// MoE layers with one row per (token, rank) through the C API: random shapes in every mode, on teams, and rejections.
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string_view>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/moe/rank_layer.hpp"

namespace npushmem::api_test {
namespace {

Case case_of(std::uint64_t seed, int ranks) {
    std::mt19937_64 random(seed);
    const auto one_of = [&](auto... values) { return drawn(random, values...); };
    Case c;
    c.seed = seed;
    c.ranks = ranks;
    c.config.experts = one_of(1, 2, 7, 64, 256);
    c.config.top_k = one_of(1, 2, 8, 32);
    c.config.hidden = one_of(1, 7, 64, 133);
    c.config.max_tokens = one_of(1, 9);
    c.config.input_type = one_of(NPUSHMEMX_MOE_BF16, NPUSHMEMX_MOE_FLOAT);
    c.config.output_type = one_of(NPUSHMEMX_MOE_BF16, NPUSHMEMX_MOE_FLOAT);
    c.config.copy = one_of(0, 1, 2, 3);
    c.config.audit = one_of(0, 1);
    c.config.capacity = c.config.max_tokens * ranks;
    c.config.rows = NPUSHMEMX_MOE_ROW_PER_RANK;
    c.absent = one_of(0.0, 0.3, 1.0);
    c.crowded = random() % 4 == 0;
    c.special = random() % 3 == 0;
    return c;
}

// Every shape in every mode, with the rings at either end, and each call in another way.
void test_shapes(Checker& check, const Job& job, std::uint64_t shapes) {
    std::size_t call = 0;
    for (std::uint64_t seed = 1; seed <= shapes; ++seed) {
        for (const std::int32_t mode : {NPUSHMEMX_MOE_DIRECT, NPUSHMEMX_MOE_CHUNKED, NPUSHMEMX_MOE_STREAM}) {
            Case c = case_of(seed, job.npes);
            c.config.mode = mode;
            c.config.ring = static_cast<std::int32_t>(seed % 2);
            RankLayer layer(check, c, job.me);
            if (!layer.open()) return;
            for (int i = 0; i < 2; ++i) layer.run(ways[call++ % ways.size()]);
        }
    }
    check.no_error("shapes");
}

// All ways on one handle, repeatedly; more tokens than a chunk; the longest rows.
void test_ways(Checker& check, const Job& job) {
    for (const std::int32_t mode : {NPUSHMEMX_MOE_DIRECT, NPUSHMEMX_MOE_CHUNKED, NPUSHMEMX_MOE_STREAM}) {
        Case c = case_of(100, job.npes);
        c.config.experts = 2 * job.npes;
        c.config.top_k = 3;
        c.config.hidden = 11;
        c.config.mode = mode;
        c.config.max_tokens = mode == NPUSHMEMX_MOE_CHUNKED ? 300 : 20;
        c.config.capacity = c.config.max_tokens * job.npes;
        c.absent = 0.2;
        c.crowded = false;
        RankLayer layer(check, c, job.me);
        if (!layer.open()) return;
        for (const Way way : ways) layer.run(way);
        layer.run(Way::index);
    }
    Case c = case_of(3, job.npes);
    c.config.hidden = 8191;
    c.config.max_tokens = 2;
    c.config.capacity = 2 * job.npes;
    c.absent = 0.1;
    RankLayer layer(check, c, job.me);
    if (layer.open()) layer.run(Way::index);
    check.no_error("ways");
}

// A layer on each of two teams.
void test_teams(Checker& check, const Job& job) {
    if (job.npes < 4) return;
    npushmem_team_t own = team_of_parity(job);
    {
        Case c = case_of(7, npushmem_team_n_pes(own));
        c.config.team = own;
        c.config.max_tokens = 5;
        c.config.capacity = 5 * c.ranks;
        RankLayer layer(check, c, npushmem_team_my_pe(own));
        if (layer.open()) {
            for (const Way way : ways) layer.run(way);
        }
    }
    npushmem_team_destroy(own);
    check.no_error("teams");
}

// Rows long enough to stay in place, of all PEs and of teams.
void test_rows_in_place(Checker& check, const Job& job) {
    npushmem_team_t half = job.npes < 4 ? NPUSHMEM_TEAM_INVALID : team_of_parity(job);
    for (const npushmem_team_t team : {NPUSHMEM_TEAM_WORLD, half}) {
        if (team == NPUSHMEM_TEAM_INVALID) continue;
        for (const std::int32_t type : {NPUSHMEMX_MOE_BF16, NPUSHMEMX_MOE_HALF, NPUSHMEMX_MOE_FLOAT}) {
            Case c = case_of(8, npushmem_team_n_pes(team));
            c.config.team = team;
            c.config.experts = 2 * c.ranks + 1;
            c.config.top_k = 4;
            c.config.hidden = 1024 / static_cast<std::int64_t>(bytes_of(type)) + 5;
            c.config.max_tokens = 9;
            c.config.capacity = 9 * c.ranks;
            c.config.input_type = type;
            c.config.copy = NPUSHMEMX_MOE_COPY_AUTO;
            c.config.audit = 0;
            c.absent = 0.2;
            c.crowded = false;
            SymmetricRows rows(c);
            RankLayer layer(check, c, npushmem_team_my_pe(team));
            if (!layer.open()) return;
            layer.keep_rows_in(rows);
            for (const Way way : ways) layer.run(way);
        }
    }
    npushmem_team_destroy(half);
    check.no_error("rows in place");
}

void test_refusals(Checker& check, const Job& job) {
    npushmemx_moe_t* handle = nullptr;
    Case c = case_of(1, job.npes);
    const auto create_fails = [&](const char* what, int code, std::initializer_list<std::string_view> words) {
        check.equal(what, code, npushmemx_moe_create(&c.config, &handle));
        check.failed_with(what, code, words);
        check.that("no handle", handle == nullptr);
        c = case_of(1, job.npes);
    };
    c.config.rows = 2;
    create_fails("rows", NPUSHMEM_E_ARGUMENT, {"rows is 2, must be from 0 to 1"});
    if (job.me == job.npes - 1) c.config.dispatch_input = 5;
    create_fails("on one PE", NPUSHMEM_E_ARGUMENT, {"dispatch_input is 5, must be from 0 to 1"});
    c.config.top_k = 4;
    c.config.capacity = (std::int64_t{1} << 29);
    create_fails("capacity", NPUSHMEM_E_ARGUMENT, {"capacity is 536870912, must be from 0 to 536870911"});
    if (job.npes > 1) {
        if (job.me > 0) c.config.rows = NPUSHMEMX_MOE_ROW_PER_CHOICE;
        create_fails("disagreement", NPUSHMEM_E_MISMATCH, {"disagree on rows: rank 0 has 1, rank 1 has 0"});
    }

    // A program from before the structure had `rows` gets one row per choice.
    c.config.struct_size = offsetof(npushmemx_moe_config_t, rows);
    c.config.rows = 99;
    check.equal("an older structure", 0, npushmemx_moe_create(&c.config, &handle));
    npushmemx_moe_received_t received{};
    check.equal("not per rank", NPUSHMEM_E_UNSUPPORTED, npushmemx_moe_get_received(handle, &received));
    check.failed_with("not per rank", NPUSHMEM_E_UNSUPPORTED, {"one row per choice", "NPUSHMEMX_MOE_ROW_PER_RANK"});
    npushmemx_moe_destroy(handle);
    check.equal("NULL", NPUSHMEM_E_ARGUMENT, npushmemx_moe_get_received(nullptr, &received));
    check.failed_with("NULL", NPUSHMEM_E_ARGUMENT, {"handle or received is NULL"});
}

// More received rows than the capacity, and a call that one PE gets wrong. The layer works again afterwards.
void test_refused_calls(Checker& check, const Job& job) {
    Case c = case_of(2, job.npes);
    c.config.experts = job.npes;
    c.config.top_k = 2;
    c.config.hidden = 5;
    c.config.max_tokens = 4;
    c.config.input_type = NPUSHMEMX_MOE_FLOAT;
    c.config.capacity = 4 * job.npes;
    c.config.mode = NPUSHMEMX_MOE_DIRECT;
    RankLayer layer(check, c, job.me);
    if (!layer.open()) return;
    npushmemx_moe_t* small = nullptr;
    c.config.capacity = 3;
    check.equal("create", 0, npushmemx_moe_create(&c.config, &small));
    const std::vector<float> in(4 * 5);
    const std::vector<float> weights(8, 1.0F);
    const std::vector<std::int32_t> twice(8, job.npes - 1);
    void* x = &small;
    check.equal("too many", NPUSHMEM_E_RANGE,
                npushmemx_moe_dispatch(small, 4, in.data(), twice.data(), weights.data(), &x));
    check.failed_with("too many", NPUSHMEM_E_RANGE,
                      {"with these 4 rows", fmt::format("rank {} would hold", job.npes - 1), "capacity of 3"});
    check.that("x stays", x == &small);
    if (job.npes <= 3) {  // one row for both choices of a token
        check.equal("just enough", 0, npushmemx_moe_dispatch(small, 1, in.data(), twice.data(), weights.data(), &x));
    }
    std::vector<std::int32_t> wrong(2, 0);
    if (job.me == 0) wrong[1] = job.npes;
    check.equal("bad expert", NPUSHMEM_E_RANGE,
                npushmemx_moe_dispatch(small, 1, in.data(), wrong.data(), weights.data(), &x));
    check.failed_with("bad expert", NPUSHMEM_E_RANGE, {"rank 0", "token 0, choice 1"});
    check.equal("bad expert of a routing", NPUSHMEM_E_RANGE,
                npushmemx_moe_set_routing(small, 1, wrong.data(), weights.data()));
    check.failed_with("bad expert of a routing", NPUSHMEM_E_RANGE, {"rank 0", "token 0, choice 1"});
    npushmemx_moe_destroy(small);

    layer.run(Way::routing);
    npushmemx_moe_plan_t plan{};
    npushmemx_moe_get_plan(layer.handle(), &plan);
    std::vector<std::int32_t> lengths(plan.length_table, plan.length_table + plan.local_experts * plan.ranks);
    if (job.me == 0) lengths[0] += 1 << 20;
    check.equal("a wrong table", NPUSHMEM_E_RANGE,
                npushmemx_moe_set_plan(layer.handle(), plan.offset_table, lengths.data(), plan.slots, plan.rows));
    check.failed_with("a wrong table", NPUSHMEM_E_RANGE, {"outside x"});
    layer.run(Way::index);
    const std::vector<std::int32_t> first(8, 0);
    check.equal("dispatch to rank 0", 0,
                npushmemx_moe_dispatch(layer.handle(), 4, in.data(), first.data(), weights.data(), &x));
    std::vector<float> out(4 * 5);
    const int code = npushmemx_moe_combine(layer.handle(), job.me == 0 ? nullptr : x, out.data());
    check.equal("a wrong call", NPUSHMEM_E_ARGUMENT, code);
    check.failed_with("a wrong call", code, {job.me == 0 ? "x is null" : "rank 0 has aborted: moe: x is null"});
    check.equal("reset", 0, npushmemx_moe_reset(layer.handle()));
    for (const Way way : ways) layer.run(way);
    check.no_error("after refusals");
}

void rank_row_tests(Checker& check, const Job& job, std::uint64_t shapes) {
    test_shapes(check, job, shapes);
    test_ways(check, job);
    test_teams(check, job);
    test_rows_in_place(check, job);
    test_refusals(check, job);
    test_refused_calls(check, job);
}

}  // namespace
}  // namespace npushmem::api_test

// Argument: the number of random shapes; default 10.
int main(int argc, char** argv) {
    const std::uint64_t shapes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10;
    return npushmem::api_test::run_family("moe rows per rank", [&](auto& check, const auto& job) {
        npushmem::api_test::rank_row_tests(check, job, shapes);
    });
}
