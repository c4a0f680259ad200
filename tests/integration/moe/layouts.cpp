// SPDX-License-Identifier: BSD-3-Clause
// Layouts of MoE layers through the C API: aligned experts and fixed slots, rows that travel again by a kept layout,
// and gradients. Everything is compared bit by bit with a scalar reference that shares no code with the library.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/moe/rank_layer.hpp"

namespace npushmem::api_test {
namespace {

constexpr std::uint32_t gap = 0xFFFFFFFFU;

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
        float all = 0;
        const auto weight_of = [&](int k) { return weighted ? weight(rank, token, k) : 1.0F; };
        if (!per_rank()) {
            for (int k = 0; k < config.top_k; ++k) {
                if (expert(rank, token, k) < 0) continue;
                const float product = weight_of(k) * row(k);
                all = all + product;
            }
            return rounded(config.output_type, all);
        }
        for (int holder = 0; holder < ranks; ++holder) {
            float of_holder = 0;
            bool any = false;
            for (int k = 0; k < config.top_k; ++k) {
                const int id = expert(rank, token, k);
                if (id < 0 || rank_of(id) != holder) continue;
                const float product = weight_of(k) * row(k);
                of_holder = of_holder + product;
                any = true;
            }
            if (any) all = all + rounded(type(), of_holder);
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
        check_.equal("dispatch_backward", 0, npushmemx_moe_dispatch_backward(handle_, of_rows.data(), grad_in.data()));
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

    void combine(const LayoutCase& c) {
        const std::vector<std::byte> rows = rows_of_experts(c, experts_rows);
        std::vector<std::byte> out(out_bytes(c));
        check_.equal("combine", 0, npushmemx_moe_combine(handle_, rows.data(), out.data()));
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
};

Case case_of(std::uint64_t seed, int ranks) {
    std::mt19937_64 random(seed);
    const auto one_of = [&](auto... values) {
        const std::array all{values...};
        return all[random() % all.size()];
    };
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
    // All PEs have equal symmetric memory.
    return c;
}

// The same layer with other tokens and choices.
LayoutCase pass_of(const Case& c, std::uint64_t pass) {
    LayoutCase of_pass(c);
    of_pass.seed = c.seed * 1000 + pass;
    return of_pass;
}

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

// Layouts of a layer with quantized rows, used in one without, with longer rows; after the first one is gone.
void test_other_handle(Checker& check, const Job& job) {
    for (const std::int32_t rows : {NPUSHMEMX_MOE_ROW_PER_CHOICE, NPUSHMEMX_MOE_ROW_PER_RANK}) {
        Case c = case_of(11, job.npes);
        c.config.rows = rows;
        c.config.mode = NPUSHMEMX_MOE_DIRECT;
        c.config.experts = 8;
        c.config.top_k = 2;
        c.config.expert_alignment = 4;
        c.config.max_tokens = 9;
        c.config.capacity = 9 * 2 * job.npes + 4 * 8;
        c.absent = 0.2;
        c.crowded = false;
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

// Layouts that do not fit, or not each other. The layer works again afterwards.
void test_refusals(Checker& check, const Job& job) {
    Case c = case_of(5, job.npes);
    c.config.rows = NPUSHMEMX_MOE_ROW_PER_CHOICE;
    c.config.mode = NPUSHMEMX_MOE_DIRECT;
    c.config.experts = 6;
    c.config.top_k = 2;
    c.config.expert_alignment = 2;
    c.config.max_tokens = 9;
    c.config.capacity = 9 * 2 * job.npes + 2 * 6;
    c.absent = 0;
    c.crowded = false;
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
        Case c = case_of(5, job.npes);
        c.config.rows = NPUSHMEMX_MOE_ROW_PER_RANK;
        c.config.experts = job.npes;
        c.config.top_k = 1;
        c.config.hidden = 1;
        c.config.input_type = NPUSHMEMX_MOE_FLOAT;
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
    Case c = case_of(5, job.npes);
    c.config.rows = NPUSHMEMX_MOE_ROW_PER_CHOICE;
    c.config.experts = job.npes;
    c.config.top_k = 1;
    c.config.expert_alignment = 0;
    c.config.max_tokens = 2;
    c.config.capacity = 0;
    c.config.mode = NPUSHMEMX_MOE_DIRECT;
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

// A small layer whose rank r chooses expert r + 1.
Case ring_case(const Job& job) {
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
void gradients_in_a_ring(Checker& check, const Job& job, npushmemx_moe_t* handle, int calls) {
    const float weight = 2;
    const std::int32_t right = job.right();
    float in = 1;
    check.equal("dispatch", 0, npushmemx_moe_dispatch(handle, 1, &in, &right, &weight, nullptr));
    npushmemx_moe_plan_t plan{};
    check.equal("get_plan", 0, npushmemx_moe_get_plan(handle, &plan));
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
        c.config.timeout_ns = job.me == 0 ? 20'000'000 : 0;
        LayoutLayer layer(check, c, job.me);
        if (!layer.open()) return;
        gradients_in_a_ring(check, job, layer.handle(), 1);
        npushmem_barrier_all();
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
        given_up = 0;
        npushmem_barrier_all();
    }
    check.no_error("a late PE");
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

// Layers on two teams, and a layout of another team.
void test_teams(Checker& check, const Job& job) {
    if (job.npes < 4) return;
    npushmem_team_t own = NPUSHMEM_TEAM_INVALID;
    for (int start = 0; start < 2; ++start) {
        npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
        npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, start, 2, job.npes / 2, nullptr, 0, &team);
        if (team != NPUSHMEM_TEAM_INVALID) own = team;
    }
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

// Too many tokens or rows of a layout, and configurations that cannot be.
void test_sizes(Checker& check, const Job& job) {
    Case c = case_of(5, job.npes);
    c.config.rows = NPUSHMEMX_MOE_ROW_PER_CHOICE;
    c.config.experts = job.npes;
    c.config.top_k = 1;
    c.config.expert_alignment = 0;
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
}  // namespace npushmem::api_test

// Argument: the number of random shapes; default 24.
int main(int argc, char** argv) {
    const std::uint64_t shapes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 24;
    return npushmem::api_test::run_family(
        "moe layouts",
        [&](auto& check, const auto& job) {
            npushmem::api_test::test_shapes(check, job, shapes);
            npushmem::api_test::test_other_handle(check, job);
            npushmem::api_test::test_refusals(check, job);
            npushmem::api_test::test_rejected_call(check, job);
            npushmem::api_test::test_order(check, job);
            npushmem::api_test::test_sizes(check, job);
            npushmem::api_test::test_threads(check, job);
            npushmem::api_test::test_late_pe(check, job);
            npushmem::api_test::test_kinds(check, job);
            npushmem::api_test::test_teams(check, job);
        },
        NPUSHMEM_THREAD_MULTIPLE);
}
