// SPDX-License-Identifier: BSD-3-Clause
// Layouts of MoE layers through the C API: aligned experts and fixed slots, rows that travel again by a kept layout,
// and gradients.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/moe/layout_layer.hpp"

namespace npushmem::api_test {
namespace {

// Three passes forward; then their layouts in reverse, each twice, on the same handle.
void test_shapes(Checker& check, const Job& job, std::uint64_t shapes) {
    for (std::uint64_t seed = 1; seed <= shapes; ++seed) {
        const Case c = case_of(seed, job.npes);
        LayoutLayer layer(check, c, job.me);
        if (!layer.open()) return;
        std::vector<npushmemx_moe_layout_t*> layouts;
        for (std::uint64_t pass = 0; pass < 3; ++pass) layouts.push_back(layer.forward(pass_of(c, pass)));
        layer.gradients(pass_of(c, 2));
        for (std::uint64_t pass = 3; pass-- > 0;) {
            layer.again(pass_of(c, pass), layouts[pass], pass == 1);
            layer.gradients(pass_of(c, pass));
        }
        for (npushmemx_moe_layout_t* layout : layouts) npushmemx_moe_layout_destroy(layout);
    }
    check.no_error("shapes");
}

// Rows long enough to stay in place; those of the gradients, too.
void test_rows_in_place(Checker& check, const Job& job) {
    for (const std::int32_t rows : {NPUSHMEMX_MOE_ROW_PER_CHOICE, NPUSHMEMX_MOE_ROW_PER_RANK}) {
        Case c = direct_case(12, job.npes, rows, 8, 4);
        c.config.hidden = 600;
        c.absent = 0.2;
        c.config.copy = NPUSHMEMX_MOE_COPY_AUTO;
        c.config.audit = 0;
        SymmetricRows memory(c);
        LayoutLayer layer(check, c, job.me);
        if (!layer.open()) return;
        layer.keep_rows_in(memory);
        npushmemx_moe_layout_t* layout = layer.forward(pass_of(c, 0));
        layer.forward(pass_of(c, 1));
        layer.again(pass_of(c, 0), layout, false);
        npushmemx_moe_layout_destroy(layout);
    }
    check.no_error("rows in place");
}

// Layouts of a layer with quantized rows, used in one without, with longer rows; after the first one is gone.
void test_other_handle(Checker& check, const Job& job) {
    for (const std::int32_t rows : {NPUSHMEMX_MOE_ROW_PER_CHOICE, NPUSHMEMX_MOE_ROW_PER_RANK}) {
        Case c = direct_case(11, job.npes, rows, 8, 4);
        c.absent = 0.2;
        npushmemx_moe_layout_t* layout = nullptr;
        Case quantized = c;
        quantized.config.dispatch_type = NPUSHMEMX_MOE_E4M3;
        {
            LayoutLayer first(check, quantized, job.me);
            if (!first.open()) return;
            layout = first.forward(pass_of(quantized, 0));
            first.again_quantized(pass_of(quantized, 0), layout);
            std::vector<float> memory(4096);
            check.equal("quantized", NPUSHMEM_E_UNSUPPORTED,
                        npushmemx_moe_combine_backward(first.handle(), memory.data(), memory.data(), memory.data(),
                                                       memory.data()));
            check.failed_with("quantized", NPUSHMEM_E_UNSUPPORTED, {"quantized", "dispatch_type 0"});
        }
        c.config.hidden += 5;
        c.config.max_tokens = 12;
        c.config.capacity += 3;
        LayoutLayer second(check, c, job.me);
        if (!second.open()) return;
        Case of_layout = c;
        of_layout.config.max_tokens = 9;  // its numbers of tokens
        LayoutCase pass = pass_of(of_layout, 0);
        second.again(pass, layout, false);
        second.forward(pass_of(c, 1));
        npushmemx_moe_layout_destroy(layout);
    }
    check.no_error("another handle");
}

// Two handles in two threads: gradients need no barrier of the team.
void test_threads(Checker& check, const Job& job) {
    const Case c = ring_case(job);
    LayoutLayer first(check, c, job.me);
    LayoutLayer second(check, c, job.me);
    if (!first.open() || !second.open()) return;
    Checker of_thread("moe layouts, second thread");
    std::thread thread([&] { gradients_in_a_ring(of_thread, job, second.handle(), 200); });
    gradients_in_a_ring(check, job, first.handle(), 200);
    thread.join();
    check.equal("the other thread", 0, of_thread.exit_status());
    check.no_error("threads");
}

// A PE that comes too late for another one: no PE succeeds with gradients that one lacks.
void test_late_pe(Checker& check, const Job& job) {
    if (job.npes == 1) return;
    for (const std::int64_t capacity : {std::int64_t{NPUSHMEMX_MOE_FIXED_SLOTS}, std::int64_t{job.npes}}) {
        Case c = ring_case(job);
        c.config.capacity = capacity;
        // The short timeout is that of the late call alone: on a loaded machine a dispatch may take longer.
        LayoutLayer patient(check, c, job.me);
        c.config.timeout_ns = job.me == 0 ? 20'000'000 : 0;
        LayoutLayer layer(check, c, job.me);
        if (!patient.open() || !layer.open()) return;
        gradients_in_a_ring(check, job, patient.handle(), 1);
        npushmemx_moe_layout_t* layout = nullptr;
        check.equal("get_layout", 0, npushmemx_moe_get_layout(patient.handle(), &layout));
        check.equal("set_layout", 0, npushmemx_moe_set_layout(layer.handle(), layout));
        const float in = 1;
        const std::vector<float> rows(static_cast<std::size_t>(job.npes));
        std::vector<float> grad_rows(rows.size());
        float grad_weight = 0;
        const auto call = [&] {
            return npushmemx_moe_combine_backward(layer.handle(), &in, rows.data(), grad_rows.data(), &grad_weight);
        };
        // The last PE calls when PE 0 has given up.
        static long given_up;
        if (job.me == job.npes - 1) npushmem_long_wait_until(&given_up, NPUSHMEM_CMP_EQ, 1);
        check.equal("late", NPUSHMEM_E_TIMEOUT, call());
        check.failed_with("late", NPUSHMEM_E_TIMEOUT, {"rank 0"});
        if (job.me == 0) npushmem_long_p(&given_up, 1, job.npes - 1);
        check.equal("reset", 0, npushmemx_moe_reset(layer.handle()));
        npushmemx_moe_layout_destroy(layout);
        given_up = 0;
        npushmem_barrier_all();
    }
    check.no_error("a late PE");
}

// Layers on two teams, and a layout of another team.
void test_teams(Checker& check, const Job& job) {
    if (job.npes < 4) return;
    npushmem_team_t own = team_of_parity(job);
    Case c = case_of(9, npushmem_team_n_pes(own));
    c.config.team = own;
    c.config.max_tokens = 5;
    c.config.capacity = NPUSHMEMX_MOE_FIXED_SLOTS;
    const int me = npushmem_team_my_pe(own);
    npushmemx_moe_layout_t* layout = nullptr;
    {
        LayoutLayer layer(check, c, me);
        if (layer.open()) {
            layout = layer.forward(pass_of(c, 0));
            npushmemx_moe_layout_destroy(layer.forward(pass_of(c, 1)));
            layer.again(pass_of(c, 0), layout, true);
        }
    }
    LayoutLayer world(check, ring_case(job), job.me);
    if (world.open()) {
        check.equal("another team", NPUSHMEM_E_ARGUMENT, npushmemx_moe_set_layout(world.handle(), layout));
        check.failed_with("another team", NPUSHMEM_E_ARGUMENT, {"other ranks"});
    }
    npushmemx_moe_layout_destroy(layout);
    npushmem_team_destroy(own);
    check.no_error("teams");
}

}  // namespace
}  // namespace npushmem::api_test

// Argument: the number of random shapes; default 24.
int main(int argc, char** argv) {
    using namespace npushmem::api_test;
    const std::uint64_t shapes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 24;
    const auto tests = [&](Checker& check, const Job& job) {
        test_shapes(check, job, shapes);
        test_other_handle(check, job);
        test_rows_in_place(check, job);
        test_layout_refusals(check, job);
        test_threads(check, job);
        test_late_pe(check, job);
        test_teams(check, job);
    };
    return run_family("moe layouts", tests, NPUSHMEM_THREAD_MULTIPLE);
}
