// SPDX-License-Identifier: BSD-3-Clause
// What layouts of MoE layers reject, and that layers work again afterwards.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/moe/layout_layer.hpp"

namespace npushmem::api_test {
namespace {

// Layouts that do not fit, or not each other. The layer works again afterwards.
void test_refusals(Checker& check, const Job& job) {
    Case c = direct_case(5, job.npes, NPUSHMEMX_MOE_ROW_PER_CHOICE, 6, 2);
    c.absent = 0;
    LayoutLayer layer(check, c, job.me);
    if (!layer.open()) return;
    npushmemx_moe_layout_t* none = nullptr;
    void* x = nullptr;
    std::vector<float> memory(4096);
    check.equal("no routing", NPUSHMEM_E_STATE, npushmemx_moe_get_layout(layer.handle(), &none));
    check.failed_with("no routing", NPUSHMEM_E_STATE, {"no routing"});
    check.equal("nothing dispatched", NPUSHMEM_E_STATE,
                npushmemx_moe_dispatch_cached(layer.handle(), memory.data(), &x));
    check.failed_with("nothing dispatched", NPUSHMEM_E_STATE, {"not that of a dispatch"});
    npushmemx_moe_layout_t* first = layer.forward(pass_of(c, 0));
    npushmemx_moe_layout_t* second = layer.forward(pass_of(c, 1));

    const auto refuses = [&](const char* what, npushmemx_moe_t* handle, const npushmemx_moe_layout_t* layout, int code,
                             std::initializer_list<std::string_view> words) {
        check.equal(what, code, npushmemx_moe_set_layout(handle, layout));
        check.failed_with(what, code, words);
    };
    refuses("NULL on the last PE", layer.handle(), job.me == job.npes - 1 ? nullptr : first, NPUSHMEM_E_ARGUMENT,
            {"layout is NULL"});
    if (job.npes > 1) {
        refuses("of different calls", layer.handle(), job.me == 0 ? first : second, NPUSHMEM_E_MISMATCH,
                {"disagree on the routing of the layout: rank 0 has 1, rank 1 has 2"});
        npushmemx_moe_set_layout(layer.handle(), first);
        const std::vector<std::byte> in(4096);
        const int code = job.me == 0 ? npushmemx_moe_dispatch_cached(layer.handle(), in.data(), &x)
                                     : npushmemx_moe_dispatch(layer.handle(), 0, nullptr, nullptr, nullptr, &x);
        check.equal("two kinds of calls", NPUSHMEM_E_MISMATCH, code);
        check.failed_with("two kinds of calls", code,
                          {job.me == 0 ? "rank 1 sends rows by a new routing, rank 0 rows by routing 1"
                                       : "rank 0 sends rows by routing 1, rank"});
        layer.again(pass_of(c, 0), first, false);
    }
    npushmemx_moe_set_layout(layer.handle(), first);
    int with_tokens = 0;
    while (pass_of(c, 0).tokens_of(with_tokens) == 0) ++with_tokens;
    check.equal("`in` of one PE", NPUSHMEM_E_ARGUMENT,
                npushmemx_moe_dispatch_cached(layer.handle(), job.me == with_tokens ? nullptr : memory.data(), &x));
    check.failed_with("`in` of one PE", NPUSHMEM_E_ARGUMENT, {"in is null"});
    check.equal(
        "overlap", NPUSHMEM_E_ARGUMENT,
        npushmemx_moe_combine_backward(layer.handle(), memory.data(), memory.data(), memory.data(), memory.data()));
    check.failed_with("overlap", NPUSHMEM_E_ARGUMENT, {"grad_x", "overlaps grad_out"});
    layer.again(pass_of(c, 1), second, true);

    const auto differs = [&](const char* what, int code, std::initializer_list<std::string_view> words,
                             const auto& change) {
        Case other = c;
        change(other.config);
        LayoutLayer different(check, other, job.me);
        if (!different.open()) return;
        refuses(what, different.handle(), first, code, words);
        npushmemx_moe_layout_destroy(different.forward(pass_of(other, 3)));
    };
    differs("experts", NPUSHMEM_E_ARGUMENT, {"experts 6, this one has 7"}, [](auto& config) { config.experts = 7; });
    differs("top_k", NPUSHMEM_E_ARGUMENT, {"top_k 2, this one has 1"}, [](auto& config) { config.top_k = 1; });
    differs("alignment", NPUSHMEM_E_ARGUMENT, {"expert_alignment 2, this one has 1"},
            [](auto& config) { config.expert_alignment = 1; });
    differs("rows", NPUSHMEM_E_ARGUMENT, {"rows 0, this one has 1"},
            [](auto& config) { config.rows = NPUSHMEMX_MOE_ROW_PER_RANK; });
    differs("slots", NPUSHMEM_E_ARGUMENT, {"other slots"},
            [](auto& config) { config.capacity = NPUSHMEMX_MOE_FIXED_SLOTS; });

    check.equal("reset", 0, npushmemx_moe_reset(layer.handle()));
    layer.again(pass_of(c, 0), first, false);
    check.equal("set_routing", 0, npushmemx_moe_set_routing(layer.handle(), 0, nullptr, nullptr));
    npushmemx_moe_layout_t* of_routing = nullptr;
    check.equal("layout of a routing", 0, npushmemx_moe_get_layout(layer.handle(), &of_routing));
    check.equal("set it", 0, npushmemx_moe_set_layout(layer.handle(), of_routing));
    check.equal("no dispatch made it", NPUSHMEM_E_STATE,
                npushmemx_moe_dispatch_backward(layer.handle(), memory.data(), memory.data()));
    check.failed_with("no dispatch made it", NPUSHMEM_E_STATE, {"not that of a dispatch"});
    for (npushmemx_moe_layout_t* layout : {first, second, of_routing}) npushmemx_moe_layout_destroy(layout);
    npushmemx_moe_layout_destroy(nullptr);
    check.no_error("after refusals");
}

// The rows of a call stay where they are when the next one is rejected, until the one after that.
void test_rejected_call(Checker& check, const Job& job) {
    for (const std::int64_t capacity : {std::int64_t{NPUSHMEMX_MOE_FIXED_SLOTS}, std::int64_t{4} * job.npes}) {
        Case c = ring_case(job);
        c.config.rows = NPUSHMEMX_MOE_ROW_PER_RANK;
        c.config.max_tokens = 4;
        c.config.capacity = capacity;
        LayoutLayer layer(check, c, job.me);
        if (!layer.open()) return;
        const float in = 10.0F + static_cast<float>(job.me);
        const float other = -1;
        const float weight = 1;
        const std::int32_t right = job.right();
        const std::int32_t none = job.me == 0 ? job.npes : right;
        check.equal("dispatch", 0, npushmemx_moe_dispatch(layer.handle(), 1, &in, &right, &weight, nullptr));
        check.equal("no such expert", NPUSHMEM_E_RANGE,
                    npushmemx_moe_dispatch(layer.handle(), 1, &other, &none, &weight, nullptr));
        check.failed_with("no such expert", NPUSHMEM_E_RANGE, {"rank 0"});
        npushmemx_moe_received_t received{};
        check.equal("get_received", 0, npushmemx_moe_get_received(layer.handle(), &received));
        check.equal("the row", 10.0F + static_cast<float>(job.left()),
                    static_cast<const float*>(received.x)[received.row_index[0]]);
        npushmem_barrier_all();  // with fixed slots the next call of another PE may overwrite it
        check.equal("cached", 0, npushmemx_moe_dispatch_cached(layer.handle(), &other, nullptr));
        check.equal("get_received", 0, npushmemx_moe_get_received(layer.handle(), &received));
        check.equal("the row", -1.0F, static_cast<const float*>(received.x)[received.row_index[0]]);
    }
    check.no_error("a rejected call");
}

// Mode stream does not take a layout whose rows have another order.
void test_order(Checker& check, const Job& job) {
    Case c = ring_case(job);
    c.config.max_tokens = 2;
    c.config.capacity = 0;
    LayoutLayer direct(check, c, job.me);
    c.config.mode = NPUSHMEMX_MOE_STREAM;
    LayoutLayer stream(check, c, job.me);
    if (!direct.open() || !stream.open()) return;
    const std::vector<std::int32_t> own(2, job.me);
    const std::vector<float> weights(2, 1.0F);
    check.equal("set_routing", 0, npushmemx_moe_set_routing(direct.handle(), 2, own.data(), weights.data()));
    npushmemx_moe_plan_t plan{};
    npushmemx_moe_get_plan(direct.handle(), &plan);
    const std::vector<std::uint32_t> reversed{1, 0};
    check.equal("set_plan", 0,
                npushmemx_moe_set_plan(direct.handle(), plan.offset_table, plan.length_table, reversed.data(), 2));
    npushmemx_moe_layout_t* layout = nullptr;
    check.equal("get_layout", 0, npushmemx_moe_get_layout(direct.handle(), &layout));
    check.equal("another order", NPUSHMEM_E_UNSUPPORTED, npushmemx_moe_set_layout(stream.handle(), layout));
    check.failed_with("another order", NPUSHMEM_E_UNSUPPORTED, {"order of slots"});
    check.equal("in mode direct", 0, npushmemx_moe_set_layout(direct.handle(), layout));
    npushmemx_moe_layout_destroy(layout);
    check.no_error("order");
}

// Calls of different kinds on different PEs.
void test_kinds(Checker& check, const Job& job) {
    if (job.npes == 1) return;
    Case c = ring_case(job);
    LayoutLayer layer(check, c, job.me);
    c.config.capacity = 0;
    LayoutLayer without(check, c, job.me);
    if (!layer.open() || !without.open()) return;
    gradients_in_a_ring(check, job, layer.handle(), 1);
    npushmemx_moe_layout_t* layout = nullptr;
    npushmemx_moe_layout_t* passed_on = nullptr;
    check.equal("get_layout", 0, npushmemx_moe_get_layout(layer.handle(), &layout));
    const bool first = job.me == 0;
    check.equal("two calls", NPUSHMEM_E_MISMATCH,
                first ? npushmemx_moe_set_layout(layer.handle(), layout)
                      : npushmemx_moe_set_routing(layer.handle(), 0, nullptr, nullptr));
    check.failed_with("two calls", NPUSHMEM_E_MISMATCH, {"disagree on the call", "rank 0 has 2, rank 1 has 3"});
    const float in = 1;
    const float row = 1;
    float grad_row = 0;
    float grad_weight = 0;
    check.equal("two dispatches", NPUSHMEM_E_MISMATCH,
                first ? npushmemx_moe_combine_backward(layer.handle(), &in, &row, &grad_row, &grad_weight)
                      : npushmemx_moe_dispatch_cached(layer.handle(), &in, nullptr));
    check.failed_with(
        "two dispatches", NPUSHMEM_E_MISMATCH,
        {first ? "rank 1 sends rows by routing 1, rank 0 gradients" : "rank 0 sends gradients by routing 1"});
    // A layout that went through a handle without a dispatch is still that of a dispatch.
    check.equal("set_layout", 0, npushmemx_moe_set_layout(without.handle(), layout));
    check.equal("get_layout", 0, npushmemx_moe_get_layout(without.handle(), &passed_on));
    check.equal("set_layout", 0, npushmemx_moe_set_layout(layer.handle(), first ? passed_on : layout));
    check.equal("dispatch_cached", 0, npushmemx_moe_dispatch_cached(layer.handle(), &in, nullptr));
    npushmemx_moe_layout_destroy(layout);
    npushmemx_moe_layout_destroy(passed_on);
    check.no_error("kinds");
}

// Too many tokens or rows of a layout, and configurations that cannot be.
void test_sizes(Checker& check, const Job& job) {
    Case c = ring_case(job);
    c.config.max_tokens = 4;
    c.config.capacity = 4 * job.npes;
    c.config.hidden = 3;
    LayoutLayer large(check, c, job.me);
    if (!large.open()) return;
    const std::vector<float> in(4 * 3);
    const std::vector<float> weights(4, 1.0F);
    const std::vector<std::int32_t> to_first(4, 0);
    void* x = nullptr;
    npushmemx_moe_layout_t* layout = nullptr;
    check.equal("dispatch", 0,
                npushmemx_moe_dispatch(large.handle(), 4, in.data(), to_first.data(), weights.data(), &x));
    check.equal("get_layout", 0, npushmemx_moe_get_layout(large.handle(), &layout));
    const auto refuses = [&](const char* what, std::initializer_list<std::string_view> words) {
        LayoutLayer small(check, c, job.me);
        if (!small.open()) return;
        check.equal(what, NPUSHMEM_E_RANGE, npushmemx_moe_set_layout(small.handle(), layout));
        check.failed_with(what, NPUSHMEM_E_RANGE, words);
    };
    c.config.capacity = 4 * job.npes - 1;
    refuses("rows", {fmt::format("receives {} rows", 4 * job.npes), fmt::format("capacity {}", 4 * job.npes - 1)});
    c.config.max_tokens = 3;
    c.config.capacity = 4 * job.npes;
    refuses("tokens", {"has 4 tokens, above the max_tokens 3"});
    npushmemx_moe_layout_destroy(layout);

    // Two choices of an expert by each of two tokens need more slots than two tokens have.
    c.config.capacity = NPUSHMEMX_MOE_FIXED_SLOTS;
    c.config.max_tokens = 2;
    c.config.top_k = 2;
    LayoutLayer slots(check, c, job.me);
    if (!slots.open()) return;
    check.equal("slots of one choice", 0,
                npushmemx_moe_dispatch(slots.handle(), 1, in.data(), to_first.data(), weights.data(), &x));
    check.equal(
        "too many rows for the slots", NPUSHMEM_E_RANGE,
        npushmemx_moe_dispatch(slots.handle(), job.me == 0 ? 2 : 1, in.data(), to_first.data(), weights.data(), &x));
    check.failed_with("too many rows for the slots", NPUSHMEM_E_RANGE,
                      {"rank 0", "more rows for expert 0 than the 2 fixed slots"});
    check.equal("the routing stays", 0, npushmemx_moe_dispatch_cached(slots.handle(), in.data(), &x));

    npushmemx_moe_t* handle = nullptr;
    const auto create_fails = [&](const char* what, int code, std::initializer_list<std::string_view> words) {
        check.equal(what, code, npushmemx_moe_create(&c.config, &handle));
        check.failed_with(what, code, words);
    };
    c.config.capacity = -2;
    create_fails("capacity", NPUSHMEM_E_ARGUMENT, {"capacity is -2"});
    c.config.capacity = NPUSHMEMX_MOE_FIXED_SLOTS;
    c.config.expert_alignment = -1;
    create_fails("alignment", NPUSHMEM_E_ARGUMENT, {"expert_alignment is -1, must be from 1 to 1048576"});
    c.config.expert_alignment = 0;
    c.config.experts = 256 * job.npes;
    c.config.max_tokens = 1 << 24;
    create_fails("slots", NPUSHMEM_E_RANGE, {"fixed slots for 16777216 tokens"});
    c = case_of(5, job.npes);
    c.config.rows = NPUSHMEMX_MOE_ROW_PER_RANK;
    c.config.experts = 4096 * job.npes;
    c.config.expert_alignment = 1 << 20;
    c.config.capacity = 32;
    create_fails("gaps", NPUSHMEM_E_RANGE, {"the rows of 4096 experts, with an expert_alignment of 1048576"});
    if (job.npes > 1) {
        c = case_of(5, job.npes);
        c.config.expert_alignment = job.me == 0 ? 2 : 4;
        create_fails("disagreement", NPUSHMEM_E_MISMATCH, {"disagree on expert_alignment: rank 0 has 2, rank 1 has 4"});
    }
    check.no_error("sizes");
}

}  // namespace

void test_layout_refusals(Checker& check, const Job& job) {
    test_refusals(check, job);
    test_rejected_call(check, job);
    test_order(check, job);
    test_sizes(check, job);
    test_kinds(check, job);
}

}  // namespace npushmem::api_test
