// SPDX-License-Identifier: BSD-3-Clause
// The C API of an MoE layer's communication, as a program without kernels uses it: every rank, exact results, and
// rejections that reach every rank and leave the handle usable.
#include <cstdint>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

constexpr int top_k = 3;
constexpr int max_tokens_of_rank = 5;
constexpr int hidden = 37;
constexpr int experts_per_pe = 2;

// Small whole numbers, so that sums are exact whatever their order.
float element(int rank, std::uint32_t slot, int expert, int column, int call) {
    return static_cast<float>((rank * 5 + static_cast<int>(slot) * 3 + expert * 7 + column + call * 11) % 17 - 8);
}

npushmemx_moe_config_t config_for(const Job& job) {
    npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
    config.experts = experts_per_pe * job.npes;
    config.top_k = top_k;
    config.hidden = hidden;
    config.max_tokens = max_tokens_of_rank;
    config.input_type = config.output_type = NPUSHMEMX_MOE_FLOAT;
    config.capacity = top_k * max_tokens_of_rank * job.npes;
    config.audit = 1;
    return config;
}

// One rank's part of a layer. Rank 1 has no tokens; every fifth choice is absent.
class Layer {
public:
    explicit Layer(const Job& job) : job_(job), tokens_(job.me == 1 ? 0 : max_tokens_of_rank) {
        for (int i = 0; i < tokens_ * top_k; ++i) {
            ids_.push_back((i + job.me) % 5 == 4 ? -1 : (i * 3 + job.me) % (experts_per_pe * job.npes));
            weights_.push_back(static_cast<float>(1 << (i % 3)) / 2);
        }
    }

    bool open(Checker& check, std::int32_t mode = NPUSHMEMX_MOE_DIRECT, std::int32_t ring = 0) {
        npushmemx_moe_config_t config = config_for(job_);
        config.mode = mode;
        config.ring = ring;
        check.equal("create", 0, npushmemx_moe_create(&config, &handle_));
        return route(check);
    }
    bool route(Checker& check) {
        return check.equal("set_routing", 0,
                           npushmemx_moe_set_routing(handle_, tokens_, ids_.data(), weights_.data())) &&
               check.equal("get_plan", 0, npushmemx_moe_get_plan(handle_, &plan_));
    }
    void close() {
        npushmemx_moe_destroy(handle_);
        handle_ = nullptr;
    }

    // A whole layer whose experts add their number to their input.
    void pass_and_check(Checker& check, int call) {
        std::vector<float> in(static_cast<std::size_t>(tokens_ * hidden));
        for (int i = 0; i < tokens_ * hidden; ++i) in[static_cast<std::size_t>(i)] = token_element(job_.me, i, call);
        void* x = nullptr;
        if (!check.equal("dispatch", 0,
                         npushmemx_moe_dispatch(handle_, tokens_, in.data(), ids_.data(), weights_.data(), &x))) {
            return;
        }
        npushmemx_moe_get_plan(handle_, &plan_);
        check_rows(check, static_cast<const float*>(x), call);
        add_experts(static_cast<float*>(x));
        std::vector<float> out(in.size(), -1.0F);
        check.equal("combine", 0, npushmemx_moe_combine(handle_, x, out.data()));
        check_passed(check, out, call);
    }

    // The same in steps, between which other layers may run.
    void start_dispatch(Checker& check, int call) {
        call_ = call;
        out_.assign(static_cast<std::size_t>(tokens_ * hidden), 0.0F);
        for (int i = 0; i < tokens_ * hidden; ++i) out_[static_cast<std::size_t>(i)] = token_element(job_.me, i, call);
        check.equal("dispatch_nbi", 0,
                    npushmemx_moe_dispatch_nbi(handle_, tokens_, out_.data(), ids_.data(), weights_.data(), &rows_));
    }
    void run_experts(Checker& check) {
        if (!check.equal("wait for the dispatch", 0, npushmemx_moe_wait(handle_))) return;
        npushmemx_moe_get_plan(handle_, &plan_);
        check_rows(check, static_cast<const float*>(rows_), call_);
        add_experts(static_cast<float*>(rows_));
    }
    void start_combine(Checker& check) {
        check.equal("combine_nbi", 0, npushmemx_moe_combine_nbi(handle_, rows_, out_.data()));
    }
    void finish(Checker& check) {
        check.equal("wait for the combine", 0, npushmemx_moe_wait(handle_));
        check_passed(check, out_, call_);
    }

    void combine_and_check(Checker& check, int call) {
        fill(call);
        check.equal("combine", 0, npushmemx_moe_combine(handle_, x_.data(), out_.data()));
        check.equal("error text", std::string(), std::string(npushmemx_moe_error(handle_)));
        for (int token = 0; token < tokens_; ++token) {
            for (int column = 0; column < hidden; ++column) {
                check.equal(fmt::format("call {}, token {}, column {}", call, token, column),
                            expected(token, column, call), out_[static_cast<std::size_t>(token * hidden + column)]);
            }
        }
    }

    [[nodiscard]] npushmemx_moe_t* handle() const { return handle_; }
    [[nodiscard]] const npushmemx_moe_plan_t& plan() const { return plan_; }
    [[nodiscard]] std::vector<std::int32_t>& ids() { return ids_; }

private:
    static float token_element(int rank, int at, int call) {
        return static_cast<float>((rank * 7 + at * 3 + call * 5) % 23 - 11);
    }
    void check_rows(Checker& check, const float* x, int call) const {
        for (int fragment = 0; fragment < plan_.local_experts * plan_.ranks; ++fragment) {
            const int rank = fragment % plan_.ranks;
            for (int row = plan_.offset_table[fragment];
                 row < plan_.offset_table[fragment] + plan_.length_table[fragment]; ++row) {
                const int token = static_cast<int>(plan_.slots[row]) / top_k;
                for (int column = 0; column < hidden; ++column) {
                    check.equal(fmt::format("call {}, row {} of x, column {}", call, row, column),
                                token_element(rank, token * hidden + column, call), x[row * hidden + column]);
                }
            }
        }
    }
    void add_experts(float* x) const {
        for (int fragment = 0; fragment < plan_.local_experts * plan_.ranks; ++fragment) {
            float* first = x + plan_.offset_table[fragment] * hidden;
            for (int i = 0; i < plan_.length_table[fragment] * hidden; ++i) {
                first[i] += static_cast<float>(plan_.first_expert + fragment / plan_.ranks);
            }
        }
    }
    void check_passed(Checker& check, const std::vector<float>& out, int call) const {
        for (int i = 0; i < tokens_ * hidden; ++i) {
            check.equal(fmt::format("call {}, output {}", call, i), passed(i, call), out[static_cast<std::size_t>(i)]);
        }
    }
    [[nodiscard]] float passed(int at, int call) const {
        float sum = 0;
        for (int k = 0; k < top_k; ++k) {
            const auto slot = static_cast<std::size_t>(at / hidden * top_k + k);
            if (ids_[slot] < 0) continue;
            sum += weights_[slot] * (token_element(job_.me, at, call) + static_cast<float>(ids_[slot]));
        }
        return sum;
    }
    void fill(int call) {
        x_.assign(static_cast<std::size_t>(plan_.rows * hidden), 0.0F);
        out_.assign(static_cast<std::size_t>(tokens_ * hidden), -1.0F);
        for (int fragment = 0; fragment < plan_.local_experts * plan_.ranks; ++fragment) {
            const int expert = plan_.first_expert + fragment / plan_.ranks;
            for (int i = 0; i < plan_.length_table[fragment]; ++i) {
                fill_row(plan_.offset_table[fragment] + i, fragment % plan_.ranks, expert, call);
            }
        }
    }
    void fill_row(int row, int rank, int expert, int call) {
        for (int column = 0; column < hidden; ++column) {
            x_[static_cast<std::size_t>(row * hidden + column)] = element(rank, plan_.slots[row], expert, column, call);
        }
    }
    [[nodiscard]] float expected(int token, int column, int call) const {
        float sum = 0;
        for (int k = 0; k < top_k; ++k) {
            const auto slot = static_cast<std::size_t>(token * top_k + k);
            if (ids_[slot] < 0) continue;
            sum += weights_[slot] * element(job_.me, static_cast<std::uint32_t>(slot), ids_[slot], column, call);
        }
        return sum;
    }

    Job job_;
    int tokens_;
    std::vector<std::int32_t> ids_;
    std::vector<float> weights_;
    npushmemx_moe_t* handle_ = nullptr;
    npushmemx_moe_plan_t plan_{};
    std::vector<float> x_;
    std::vector<float> out_;
    int call_ = 0;
    void* rows_ = nullptr;
};

void test_calls(Checker& check, const Job& job) {
    Layer first(job);
    Layer second(job);
    if (!first.open(check) || !second.open(check)) return;
    for (int call = 0; call < 8; ++call) {
        first.combine_and_check(check, call);
        if (call % 2 == 0) second.combine_and_check(check, call + 100);
    }
    second.close();
    first.combine_and_check(check, 50);
    first.close();
}

// Layers one after another, and two at the same time.
void test_whole_layers(Checker& check, const Job& job) {
    Layer first(job);
    Layer second(job);
    if (!first.open(check) || !second.open(check)) return;
    for (int call = 0; call < 6; ++call) {
        first.pass_and_check(check, call);
        if (call % 2 == 0) second.pass_and_check(check, call + 100);
        if (call == 3 && first.route(check)) first.combine_and_check(check, call);
    }
    second.close();
    first.close();
}

// In every mode, with the rings at either end.
void test_every_mode(Checker& check, const Job& job) {
    for (const std::int32_t mode : {NPUSHMEMX_MOE_DIRECT, NPUSHMEMX_MOE_CHUNKED, NPUSHMEMX_MOE_STREAM}) {
        for (const std::int32_t ring : {NPUSHMEMX_MOE_RING_AT_RECEIVER, NPUSHMEMX_MOE_RING_AT_SENDER}) {
            Layer layer(job);
            if (!layer.open(check, mode, ring)) return;
            for (int call = 0; call < 3; ++call) {
                layer.pass_and_check(check, call);
                layer.combine_and_check(check, call + 50);
            }
            layer.close();
        }
    }
}

// Three layers: one is always at its experts while the dispatch or combine of others runs. The last one uses the mode
// that needs the most from other PEs.
void test_layers_that_overlap(Checker& check, const Job& job) {
    Layer first(job);
    Layer second(job);
    Layer third(job);
    if (!first.open(check) || !second.open(check) ||
        !third.open(check, NPUSHMEMX_MOE_STREAM, NPUSHMEMX_MOE_RING_AT_SENDER))
        return;
    for (int call = 0; call < 6; ++call) {
        first.start_dispatch(check, call);
        second.start_dispatch(check, call + 100);
        third.start_dispatch(check, call + 200);
        first.run_experts(check);
        first.start_combine(check);
        second.run_experts(check);
        second.start_combine(check);
        third.run_experts(check);
        third.start_combine(check);
        // The end of one layer's call does not end another's.
        for (Layer* layer : {&third, &first, &second}) layer->finish(check);
    }
    third.close();
    second.close();
    first.close();
}

// Other calls during a running call are rejected; reset and destruction end it.
void test_refused_under_way(Checker& check, const Job& job) {
    Layer layer(job);
    if (!layer.open(check)) return;
    check.equal("nothing to wait for", 0, npushmemx_moe_wait(layer.handle()));
    layer.start_dispatch(check, 1);
    const auto refused = [&](int code, const char* why) {
        check.equal("another call", NPUSHMEM_E_STATE, code);
        check.failed_with("another call", NPUSHMEM_E_STATE, {why, "wait for it first"});
    };
    refused(npushmemx_moe_combine(layer.handle(), nullptr, nullptr), "a dispatch is under way");
    refused(npushmemx_moe_dispatch(layer.handle(), 0, nullptr, nullptr, nullptr, nullptr), "a dispatch is under way");
    refused(npushmemx_moe_set_routing(layer.handle(), 0, nullptr, nullptr), "a dispatch is under way");
    layer.run_experts(check);
    layer.start_combine(check);
    refused(npushmemx_moe_combine_nbi(layer.handle(), nullptr, nullptr), "a combine is under way");
    layer.finish(check);
    layer.start_dispatch(check, 2);
    check.equal("reset", 0, npushmemx_moe_reset(layer.handle()));
    layer.pass_and_check(check, 3);
    check.equal("NULL", NPUSHMEM_E_ARGUMENT, npushmemx_moe_wait(nullptr));
    check.failed_with("NULL", NPUSHMEM_E_ARGUMENT, {"handle is NULL"});
    layer.start_dispatch(check, 4);
    layer.close();
}

// More rows than the capacity of a PE: all PEs reject the call, and the next call works.
void test_refused_dispatch(Checker& check, const Job& job) {
    Layer layer(job);
    if (!layer.open(check)) return;
    npushmemx_moe_config_t config = config_for(job);
    config.capacity = 2;
    npushmemx_moe_t* small = nullptr;
    check.equal("create", 0, npushmemx_moe_create(&config, &small));
    const std::vector<float> in(static_cast<std::size_t>(max_tokens_of_rank * hidden));
    const std::vector<float> weights(max_tokens_of_rank * top_k);
    const std::vector<std::int32_t> last(max_tokens_of_rank * top_k, experts_per_pe * job.npes - 1);
    void* x = &small;
    check.equal("too many", NPUSHMEM_E_RANGE,
                npushmemx_moe_dispatch(small, max_tokens_of_rank, in.data(), last.data(), weights.data(), &x));
    check.failed_with("too many", NPUSHMEM_E_RANGE, {fmt::format("expert {}, rank 0", last[0]), "capacity of 2"});
    check.that("where rows were stays", x == &small);
    check.equal("none", 0, npushmemx_moe_dispatch(small, 0, nullptr, nullptr, nullptr, &x));
    check.equal("negative", NPUSHMEM_E_ARGUMENT, npushmemx_moe_dispatch(small, -1, nullptr, nullptr, nullptr, &x));
    check.failed_with("negative", NPUSHMEM_E_ARGUMENT, {"-1 tokens"});
    const void* of_last = job.me == job.npes - 1 ? nullptr : in.data();
    check.equal("no memory", NPUSHMEM_E_ARGUMENT,
                npushmemx_moe_dispatch(small, 1, of_last, last.data(), weights.data(), &x));
    check.failed_with("no memory", NPUSHMEM_E_ARGUMENT, {"in is null but must hold 148 bytes"});
    npushmemx_moe_destroy(small);
    layer.pass_and_check(check, 3);
    layer.close();
}

void test_refused_creation(Checker& check, const Job& job) {
    npushmemx_moe_t* handle = nullptr;
    npushmemx_moe_config_t config = config_for(job);
    config.struct_size = 4;
    check.equal("wrong size", NPUSHMEM_E_ARGUMENT, npushmemx_moe_create(&config, &handle));
    check.failed_with("wrong size", NPUSHMEM_E_ARGUMENT, {"struct_size", "INITIALIZER"});
    config = config_for(job);
    config.mode = 3;
    check.equal("mode", NPUSHMEM_E_UNSUPPORTED, npushmemx_moe_create(&config, &handle));
    check.failed_with("mode", NPUSHMEM_E_UNSUPPORTED, {"mode 3"});
    // By one PE, for all.
    for (const int copy : {-1, 7}) {
        config = config_for(job);
        if (job.me == job.npes - 1) config.copy = copy;
        check.equal("copy", NPUSHMEM_E_ARGUMENT, npushmemx_moe_create(&config, &handle));
        check.failed_with("copy", NPUSHMEM_E_ARGUMENT, {fmt::format("copy is {}, must be from 0 to 3", copy)});
    }
    config = config_for(job);
    config.hidden += job.me;
    if (job.npes > 1) {
        check.equal("disagreement", NPUSHMEM_E_MISMATCH, npushmemx_moe_create(&config, &handle));
        check.failed_with("disagreement", NPUSHMEM_E_MISMATCH, {"hidden", "rank 0 has 37", "rank 1 has 38"});
    }
    check.that("no handle", handle == nullptr);
    check.equal("NULL", NPUSHMEM_E_ARGUMENT, npushmemx_moe_create(nullptr, &handle));
    check.equal("NULL handle", NPUSHMEM_E_ARGUMENT, npushmemx_moe_combine(nullptr, nullptr, nullptr));
    npushmemx_moe_destroy(nullptr);
    npushmemx_clear_error();
}

void test_refused_routing(Checker& check, const Job& job) {
    Layer layer(job);
    if (!layer.open(check)) return;
    Layer wrong(job);
    if (job.me == 0) wrong.ids()[4] = experts_per_pe * job.npes;
    check.equal("bad expert", NPUSHMEM_E_RANGE,
                npushmemx_moe_set_routing(layer.handle(), static_cast<std::int64_t>(wrong.ids().size()) / top_k,
                                          wrong.ids().data(), std::vector<float>(wrong.ids().size()).data()));
    check.failed_with("bad expert", NPUSHMEM_E_RANGE, {"rank 0", "token 1, choice 1"});
    check.equal("negative count", NPUSHMEM_E_ARGUMENT, npushmemx_moe_set_routing(layer.handle(), -1, nullptr, nullptr));
    check.failed_with("negative count", NPUSHMEM_E_ARGUMENT, {"-1 tokens"});
    layer.combine_and_check(check, 3);
    layer.close();
}

void test_refused_plan(Checker& check, const Job& job) {
    Layer layer(job);
    if (!layer.open(check)) return;
    const npushmemx_moe_plan_t& plan = layer.plan();
    std::vector<std::int32_t> lengths(plan.length_table, plan.length_table + plan.local_experts * plan.ranks);
    if (job.me == job.npes - 1) lengths[0] = 1 << 20;
    check.equal("outside x", NPUSHMEM_E_RANGE,
                npushmemx_moe_set_plan(layer.handle(), plan.offset_table, lengths.data(), plan.slots, plan.rows));
    check.failed_with("outside x", NPUSHMEM_E_RANGE, {"outside x", "expert", "rank"});
    layer.combine_and_check(check, 3);
    layer.close();
}

// One rank's rejected call must end the calls of all ranks, and the message must name it.
void test_refused_call(Checker& check, const Job& job) {
    Layer layer(job);
    if (!layer.open(check)) return;
    std::vector<float> x(static_cast<std::size_t>(layer.plan().rows * hidden + 1));
    std::vector<float> out(static_cast<std::size_t>(max_tokens_of_rank * hidden));
    const bool guilty = job.me == 0;
    const int code = npushmemx_moe_combine(layer.handle(), guilty ? nullptr : x.data(), out.data());
    check.equal("the call fails", NPUSHMEM_E_ARGUMENT, code);
    check.failed_with("the call", code, {guilty ? "x is null" : "rank 0 has aborted: moe: x is null"});
    check.that("and so do later ones", npushmemx_moe_combine(layer.handle(), x.data(), out.data()) != 0);
    check.failed_with("later ones", NPUSHMEM_E_STATE, {"out of step"});
    check.that("nor is there a dispatch",
               npushmemx_moe_dispatch(layer.handle(), 0, nullptr, nullptr, nullptr, nullptr) != 0);
    check.failed_with("the dispatch", NPUSHMEM_E_STATE, {"out of step"});
    check.equal("reset", 0, npushmemx_moe_reset(layer.handle()));
    layer.pass_and_check(check, 8);
    if (layer.route(check)) layer.combine_and_check(check, 9);
    layer.close();
}

std::uint64_t heap_in_use() {
    npushmemx_heap_info_t heap{};
    npushmemx_heap_info(&heap);
    return heap.used;
}

void tests(Checker& check, const Job& job) {
    const std::uint64_t before = heap_in_use();
    test_calls(check, job);
    test_whole_layers(check, job);
    test_every_mode(check, job);
    test_layers_that_overlap(check, job);
    check.no_error("calls");
    test_refused_creation(check, job);
    test_refused_under_way(check, job);
    test_refused_dispatch(check, job);
    test_refused_routing(check, job);
    test_refused_plan(check, job);
    test_refused_call(check, job);
    check.equal("heap in use at the end", before, heap_in_use());
}

}  // namespace
}  // namespace npushmem::api_test

int main() {
    npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
    npushmemx_moe_t* handle = nullptr;
    npushmem::api_test::Checker check("moe before init");
    check.equal("create", NPUSHMEM_E_NOT_INITIALIZED, npushmemx_moe_create(&config, &handle));
    npushmemx_clear_error();
    return check.exit_status() + npushmem::api_test::run_family("moe", npushmem::api_test::tests);
}
