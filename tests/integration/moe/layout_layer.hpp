// SPDX-License-Identifier: BSD-3-Clause
// A layer whose calls are compared bit by bit with a scalar reference that shares no code with the library: plans,
// rows, sums and gradients, by a routing of its own or by a kept layout.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "npushmem.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/moe/rank_layer.hpp"

namespace npushmem::api_test {

inline constexpr std::uint32_t gap = 0xFFFFFFFFU;

// What travels: each kind has values of its own for each token.
enum Kind : std::uint64_t { tokens_kind = 10, more_tokens, gradients_of_out, experts_rows, gradients_of_x };

// The rows of a rank's experts, in the order of the documents.
struct Place {
    int expert;  // local
    int rank;
    int token;
    int k;
};

class LayoutCase : public Case {
public:
    explicit LayoutCase(const Case& c) : Case(c) {}

    [[nodiscard]] std::int32_t type() const { return config.input_type; }
    [[nodiscard]] bool per_rank() const { return config.rows == NPUSHMEMX_MOE_ROW_PER_RANK; }
    [[nodiscard]] bool fixed() const { return config.capacity == NPUSHMEMX_MOE_FIXED_SLOTS; }
    [[nodiscard]] float value(Kind kind, int rank, int token, std::int64_t column, int k = 0) const {
        const std::uint64_t h = hashed(hash(kind, rank, token, column) + static_cast<std::uint64_t>(k));
        if (special && h % 29 == 0) return rounded(type(), h % 2 == 0 ? HUGE_VALF : 0x1p-131F);
        return rounded(type(), static_cast<float>(static_cast<int>((h >> 16) % 2001) - 1000) / 333.0F);
    }
    // With fixed slots a token chooses an expert once.
    [[nodiscard]] int expert(int rank, int token, int k) const {
        const int id = Case::expert(rank, token, k);
        for (int other = 0; other < k && fixed() && !per_rank(); ++other)
            if (Case::expert(rank, token, other) == id) return -1;
        return id;
    }
    [[nodiscard]] int first_expert(int rank) const {
        int first = 0;
        while (first < config.experts && rank_of(first) < rank) ++first;
        return first;
    }
    [[nodiscard]] int local_experts(int rank) const { return first_expert(rank + 1) - first_expert(rank); }
    // The rows of the plan; expert -1: a gap.
    [[nodiscard]] std::vector<Place> places(int me) const {
        std::vector<Place> rows;
        const int alignment = std::max(config.expert_alignment, 1);
        const auto fill = [&](std::size_t size) { rows.resize(std::max(size, rows.size()), {-1, 0, 0, 0}); };
        for (int local = 0; local < local_experts(me); ++local) {
            const std::size_t first = rows.size();
            for (int rank = 0; rank < ranks; ++rank) {
                if (slots()) fill(first + static_cast<std::size_t>(rank * config.max_tokens));
                for (int token = 0; token < tokens_of(rank); ++token)
                    for (int k = 0; k < config.top_k; ++k)
                        if (expert(rank, token, k) == first_expert(me) + local) rows.push_back({local, rank, token, k});
            }
            if (slots()) fill(first + static_cast<std::size_t>(ranks * config.max_tokens));
            while (rows.size() % static_cast<std::size_t>(alignment) != 0) rows.push_back({-1, 0, 0, 0});
        }
        return rows;
    }
    // The documented sums; row(k) is the row of the choice.
    template <class Row>
    [[nodiscard]] float sum(int rank, int token, bool weighted, const Row& row) const {
        const auto weight_of = [&](int k) { return weighted ? weight(rank, token, k) : 1.0F; };
        if (per_rank()) return sum_by_ranks(*this, rank, token, row, weight_of);
        float all = 0;
        for (int k = 0; k < config.top_k; ++k) {
            if (expert(rank, token, k) < 0) continue;
            const float product = weight_of(k) * row(k);
            all = all + product;
        }
        return rounded(config.output_type, all);
    }
    // Of the row of a choice and the gradient of its token.
    [[nodiscard]] float product(int rank, int token, int k) const {
        std::array<double, 8> sums{};
        for (std::int64_t c = 0; c < config.hidden; ++c) {
            sums[static_cast<std::size_t>(c % 8)] += static_cast<double>(value(experts_rows, rank, token, c, k)) *
                                                     static_cast<double>(value(gradients_of_out, rank, token, c));
        }
        for (const std::size_t half : {4U, 2U, 1U})
            for (std::size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
        return static_cast<float>(sums[0]);
    }

private:
    [[nodiscard]] bool slots() const { return fixed() && !per_rank(); }
};

// One handle, and the checks of its calls. Each call takes the case whose routing it uses.
class LayoutLayer {
public:
    LayoutLayer(Checker& check, const Case& c, int me) : check_(check), config_(c.config), me_(me) {}
    LayoutLayer(const LayoutLayer&) = delete;
    LayoutLayer& operator=(const LayoutLayer&) = delete;
    ~LayoutLayer() { npushmemx_moe_destroy(handle_); }

    bool open() { return check_.equal("create", 0, npushmemx_moe_create(&config_, &handle_)); }
    [[nodiscard]] npushmemx_moe_t* handle() { return handle_; }
    // Rows are copied there before a combine. `rows` must outlive the object.
    void keep_rows_in(SymmetricRows& rows) { symmetric_ = &rows; }

    int dispatch(const LayoutCase& c, void** x) {
        std::vector<std::int32_t> ids;
        std::vector<float> weights;
        for (int token = 0; token < c.tokens_of(me_); ++token) {
            for (int k = 0; k < config_.top_k; ++k) {
                ids.push_back(c.expert(me_, token, k));
                weights.push_back(c.weight(me_, token, k));
            }
        }
        const std::vector<std::byte> in = rows_of_tokens(c, tokens_kind);
        return npushmemx_moe_dispatch(handle_, c.tokens_of(me_), in.data(), ids.data(), weights.data(), x);
    }
    // Dispatch and combine; returns the layout.
    npushmemx_moe_layout_t* forward(const LayoutCase& c) {
        void* x = nullptr;
        npushmemx_moe_layout_t* layout = nullptr;
        if (!check_.equal("dispatch", 0, dispatch(c, &x))) return nullptr;
        check_plan(c);
        check_rows(c, tokens_kind, static_cast<const std::byte*>(x));
        combine(c);
        check_.equal("get_layout", 0, npushmemx_moe_get_layout(handle_, &layout));
        return layout;
    }
    // Rows, their combine, and gradients by the layout.
    void again(const LayoutCase& c, const npushmemx_moe_layout_t* layout, bool nbi) {
        if (!check_.equal("set_layout", 0, npushmemx_moe_set_layout(handle_, layout))) return;
        check_plan(c);
        const std::vector<std::byte> in = rows_of_tokens(c, more_tokens);
        void* x = nullptr;
        const int code = nbi ? npushmemx_moe_dispatch_cached_nbi(handle_, in.data(), &x)
                             : npushmemx_moe_dispatch_cached(handle_, in.data(), &x);
        if (!check_.equal("dispatch_cached", 0, code)) return;
        if (nbi) check_.equal("wait", 0, npushmemx_moe_wait(handle_));
        check_rows(c, more_tokens, static_cast<const std::byte*>(x));
        combine(c);
        gradients(c);
    }
    void gradients(const LayoutCase& c) {
        const std::vector<Place> places = c.places(me_);
        const std::vector<std::byte> grad_out = rows_of_tokens(c, gradients_of_out);
        const std::vector<std::byte> rows = rows_of_experts(c, experts_rows);
        std::vector<std::byte> grad_x(places.size() * row_bytes(), std::byte{0x5A});
        std::vector<float> grad_weights(static_cast<std::size_t>(c.tokens_of(me_) * config_.top_k), -1.0F);
        check_.equal(
            "combine_backward", 0,
            npushmemx_moe_combine_backward(handle_, grad_out.data(), rows.data(), grad_x.data(), grad_weights.data()));
        for (std::size_t i = 0; i < places.size(); ++i) {
            const Place& p = places[i];
            if (p.expert < 0) {
                check_.that("gaps stay", grad_x[i * row_bytes()] == std::byte{0x5A});
                continue;
            }
            const float weight = c.weight(p.rank, p.token, p.k);
            check_row("grad_x", c, grad_x.data() + i * row_bytes(), [&](std::int64_t column) {
                return 0 + weight * c.value(gradients_of_out, p.rank, p.token, column);
            });
        }
        for (int token = 0; token < c.tokens_of(me_); ++token) {
            for (int k = 0; k < config_.top_k; ++k) {
                const float expected = c.expert(me_, token, k) < 0 ? 0 : c.product(me_, token, k);
                const float seen = grad_weights[static_cast<std::size_t>(token * config_.top_k + k)];
                if (!same(expected, seen))
                    check_.fail(fmt::format("seed {}, grad_weights[{}][{}]: expected {}, saw {}", c.seed, token, k,
                                            expected, seen));
            }
        }
        const std::vector<std::byte> of_rows = rows_of_experts(c, gradients_of_x);
        std::vector<std::byte> grad_in(out_bytes(c));
        check_.equal("dispatch_backward", 0,
                     npushmemx_moe_dispatch_backward(handle_, address_of(of_rows), grad_in.data()));
        check_sums("grad_in", c, grad_in, false, gradients_of_x);
    }

    // Rows by the layout in a handle with a dispatch_type: each is the quantized row of its token.
    void again_quantized(const LayoutCase& c, const npushmemx_moe_layout_t* layout) {
        check_.equal("set_layout", 0, npushmemx_moe_set_layout(handle_, layout));
        const std::vector<std::byte> in = rows_of_tokens(c, more_tokens);
        void* x = nullptr;
        check_.equal("dispatch_cached", 0, npushmemx_moe_dispatch_cached(handle_, in.data(), &x));
        const auto narrow = static_cast<std::size_t>(npushmemx_moe_row_bytes(handle_));
        const std::vector<Place> places = c.places(me_);
        std::vector<std::byte> wide(row_bytes());
        std::vector<std::byte> expected(narrow);
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (places[i].expert < 0) continue;
            write(c, more_tokens, wide.data(), {0, places[i].rank, places[i].token, 0});
            npushmemx_moe_quantize(handle_, wide.data(), 1, expected.data());
            check_.that("a quantized row",
                        std::memcmp(static_cast<const std::byte*>(x) + i * narrow, expected.data(), narrow) == 0);
        }
        combine(c);
    }

private:
    [[nodiscard]] std::size_t row_bytes() const {
        return static_cast<std::size_t>(config_.hidden) * bytes_of(config_.input_type);
    }
    [[nodiscard]] std::size_t out_bytes(const LayoutCase& c) const {
        return static_cast<std::size_t>(c.tokens_of(me_) * config_.hidden) * bytes_of(config_.output_type);
    }
    void write(const LayoutCase& c, Kind kind, std::byte* row, const Place& p) const {
        for (std::int64_t column = 0; column < config_.hidden; ++column)
            store(config_.input_type, row, column, c.value(kind, p.rank, p.token, column, p.k));
    }
    [[nodiscard]] std::vector<std::byte> rows_of_tokens(const LayoutCase& c, Kind kind) const {
        std::vector<std::byte> rows(static_cast<std::size_t>(c.tokens_of(me_)) * row_bytes());
        for (int token = 0; token < c.tokens_of(me_); ++token)
            write(c, kind, rows.data() + static_cast<std::size_t>(token) * row_bytes(), {0, me_, token, 0});
        return rows;
    }
    [[nodiscard]] std::vector<std::byte> rows_of_experts(const LayoutCase& c, Kind kind) const {
        const std::vector<Place> places = c.places(me_);
        std::vector<std::byte> rows(places.size() * row_bytes(), std::byte{0xFF});  // NaNs in gaps
        for (std::size_t i = 0; i < places.size(); ++i)
            if (places[i].expert >= 0) write(c, kind, rows.data() + i * row_bytes(), places[i]);
        return rows;
    }

    // Of the rows, or of their copy in symmetric memory.
    [[nodiscard]] const std::byte* address_of(const std::vector<std::byte>& rows) {
        return symmetric_ == nullptr ? rows.data() : symmetric_->copy_of(rows.data(), rows.size());
    }
    void combine(const LayoutCase& c) {
        const std::vector<std::byte> rows = rows_of_experts(c, experts_rows);
        std::vector<std::byte> out(out_bytes(c));
        check_.equal("combine", 0, npushmemx_moe_combine(handle_, address_of(rows), out.data()));
        check_sums("out", c, out, true, experts_rows);
    }
    void check_sums(const char* what, const LayoutCase& c, const std::vector<std::byte>& rows, bool weighted,
                    Kind kind) {
        const std::size_t row = static_cast<std::size_t>(config_.hidden) * bytes_of(config_.output_type);
        for (int token = 0; token < c.tokens_of(me_); ++token) {
            for (std::int64_t column = 0; column < config_.hidden; ++column) {
                const float expected =
                    c.sum(me_, token, weighted, [&](int k) { return c.value(kind, me_, token, column, k); });
                const float seen =
                    load(config_.output_type, rows.data() + static_cast<std::size_t>(token) * row, column);
                if (same(expected, seen)) continue;
                check_.fail(fmt::format("seed {}, {} of token {}, column {}: expected {}, saw {}", c.seed, what, token,
                                        column, expected, seen));
                return;
            }
        }
    }
    template <class Value>
    void check_row(const char* what, const LayoutCase& c, const std::byte* row, const Value& value) {
        for (std::int64_t column = 0; column < config_.hidden; ++column) {
            const float expected = rounded(config_.input_type, value(column));
            const float seen = load(config_.input_type, row, column);
            if (same(expected, seen)) continue;
            check_.fail(
                fmt::format("seed {}, {}, column {}: expected {}, saw {}", c.seed, what, column, expected, seen));
            return;
        }
    }
    void check_plan(const LayoutCase& c) {
        npushmemx_moe_plan_t plan{};
        check_.equal("get_plan", 0, npushmemx_moe_get_plan(handle_, &plan));
        const std::vector<Place> places = c.places(me_);
        check_.equal("rows of the plan", static_cast<std::int64_t>(places.size()), plan.rows);
        check_.equal("tokens of the plan", static_cast<std::int64_t>(c.tokens_of(me_)), plan.tokens);
        if (plan.rows != static_cast<std::int64_t>(places.size())) return;
        std::vector<std::int64_t> counts(static_cast<std::size_t>(plan.local_experts) + 1);
        std::vector<std::int64_t> expected(counts.size());
        check_.equal("get_expert_rows", 0, npushmemx_moe_get_expert_rows(handle_, counts.data()));
        for (std::size_t i = 0; i < places.size(); ++i) {
            const Place& p = places[i];
            const std::uint32_t slot = p.expert < 0 ? gap : static_cast<std::uint32_t>(p.token * config_.top_k + p.k);
            check_.equal(fmt::format("seed {}, slot of row {}", c.seed, i), slot, plan.slots[i]);
            if (p.expert < 0) continue;
            ++expected[static_cast<std::size_t>(p.expert)];
            const std::int32_t entry = p.expert * plan.ranks + p.rank;
            const auto at = static_cast<std::int32_t>(i);
            check_.that(fmt::format("seed {}, row {} is in its fragment", c.seed, i),
                        at >= plan.offset_table[entry] && at < plan.offset_table[entry] + plan.length_table[entry]);
        }
        for (std::int32_t local = 0; local < plan.local_experts; ++local) {
            const auto at = static_cast<std::size_t>(local);
            check_.equal("rows of an expert", expected[at], counts[at]);
            check_.equal("alignment", 0, plan.offset_table[local * plan.ranks] % std::max(config_.expert_alignment, 1));
        }
    }
    void check_rows(const LayoutCase& c, Kind kind, const std::byte* x) {
        if (config_.dispatch_type != 0) return;
        const std::vector<Place> places = c.places(me_);
        for (std::size_t i = 0; i < places.size(); ++i) {
            const Place& p = places[i];
            if (p.expert < 0) continue;
            check_row("row of x", c, x + i * row_bytes(),
                      [&](std::int64_t column) { return c.value(kind, p.rank, p.token, column); });
        }
    }

    Checker& check_;
    npushmemx_moe_config_t config_;
    int me_;
    npushmemx_moe_t* handle_ = nullptr;
    SymmetricRows* symmetric_ = nullptr;
};

inline Case case_of(std::uint64_t seed, int ranks) {
    std::mt19937_64 random(seed);
    const auto one_of = [&](auto... values) { return drawn(random, values...); };
    Case c;
    c.seed = seed;
    c.ranks = ranks;
    c.config.experts = one_of(1, 3, 8, 37);
    c.config.top_k = one_of(1, 2, 6);
    c.config.hidden = one_of(1, 7, 16, 61);
    c.config.max_tokens = one_of(1, 9, 40);
    c.config.mode = one_of(NPUSHMEMX_MOE_DIRECT, NPUSHMEMX_MOE_DIRECT, NPUSHMEMX_MOE_CHUNKED, NPUSHMEMX_MOE_STREAM);
    c.config.input_type = one_of(NPUSHMEMX_MOE_BF16, NPUSHMEMX_MOE_HALF, NPUSHMEMX_MOE_FLOAT);
    c.config.output_type = one_of(NPUSHMEMX_MOE_BF16, NPUSHMEMX_MOE_FLOAT);
    c.config.copy = one_of(0, 1, 2, 3);
    c.config.audit = one_of(0, 1);
    c.config.ring = one_of(0, 1);
    c.config.expert_alignment = one_of(0, 1, 4, 7, 128);
    c.config.rows = one_of(NPUSHMEMX_MOE_ROW_PER_CHOICE, NPUSHMEMX_MOE_ROW_PER_RANK);
    // Enough for all choices, each with an alignment of its own.
    c.config.capacity = one_of(0, 1) == 0 ? NPUSHMEMX_MOE_FIXED_SLOTS
                                          : c.config.max_tokens * ranks * c.config.top_k +
                                                c.config.experts * static_cast<std::int64_t>(c.config.expert_alignment);
    c.absent = one_of(0.0, 0.3, 1.0);
    c.crowded = random() % 4 == 0;
    c.special = random() % 3 == 0;
    return c;
}

// A small layer in mode direct, with two choices of each token.
inline Case direct_case(std::uint64_t seed, int ranks, std::int32_t rows, std::int32_t experts,
                        std::int32_t alignment) {
    Case c = case_of(seed, ranks);
    c.config.rows = rows;
    c.config.mode = NPUSHMEMX_MOE_DIRECT;
    c.config.experts = experts;
    c.config.top_k = 2;
    c.config.expert_alignment = alignment;
    c.config.max_tokens = 9;
    c.config.capacity = 9 * 2 * ranks + alignment * experts;
    c.crowded = false;
    return c;
}

// The same layer with other tokens and choices.
inline LayoutCase pass_of(const Case& c, std::uint64_t pass) {
    LayoutCase of_pass(c);
    of_pass.seed = c.seed * 1000 + pass;
    return of_pass;
}

// A small layer whose rank r chooses expert r + 1.
inline Case ring_case(const Job& job) {
    Case c = case_of(5, job.npes);
    c.config.rows = NPUSHMEMX_MOE_ROW_PER_CHOICE;
    c.config.experts = job.npes;
    c.config.top_k = 1;
    c.config.hidden = 1;
    c.config.input_type = NPUSHMEMX_MOE_FLOAT;
    c.config.expert_alignment = 0;
    c.config.max_tokens = 1;
    c.config.capacity = job.npes;
    c.config.mode = NPUSHMEMX_MOE_DIRECT;
    return c;
}

// One token of each PE to its right neighbour, once; then gradients, `calls` times, each with its own values.
inline void gradients_in_a_ring(Checker& check, const Job& job, npushmemx_moe_t* handle, int calls) {
    const float weight = 2;
    const std::int32_t right = job.right();
    float in = 1;
    check.equal("dispatch", 0, npushmemx_moe_dispatch(handle, 1, &in, &right, &weight, nullptr));
    npushmemx_moe_plan_t plan{};
    check.equal("get_plan", 0, npushmemx_moe_get_plan(handle, &plan));
    if (plan.offset_table == nullptr) npushmem_global_exit(check.exit_status());  // the others wait for this PE
    const auto row = static_cast<std::size_t>(plan.offset_table[job.left()]);
    for (int call = 1; call <= calls; ++call) {
        in = static_cast<float>(100 * job.me + call);
        const std::vector<float> rows(static_cast<std::size_t>(plan.rows), static_cast<float>(call));
        std::vector<float> grad_rows(rows.size());
        float grad_weight = 0;
        check.equal("combine_backward", 0,
                    npushmemx_moe_combine_backward(handle, &in, rows.data(), grad_rows.data(), &grad_weight));
        check.equal("grad_row", 2 * static_cast<float>(100 * job.left() + call), grad_rows[row]);
        check.equal("grad_weight", static_cast<float>(call) * in, grad_weight);
    }
}

// Calls, layouts and configurations that are rejected (layout_refusals.cpp).
void test_layout_refusals(Checker& check, const Job& job);

}  // namespace npushmem::api_test
