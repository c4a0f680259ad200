// SPDX-License-Identifier: BSD-3-Clause
// Layers whose dispatch and combine move quantized rows, through the C API: every type, mode and kind of input, and
// rejections.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/fakes/quantized_types.hpp"
#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/moe/rank_layer.hpp"

namespace npushmem::api_test {
namespace {

// Ways to run a layer: with calls that wait; with calls that return at once; the experts read the received rows (by
// index, with one row per rank) instead of *x; the combine uses a routing that was set, instead of the dispatch's.
enum class Run { waits, returns, received, routed };

class QuantizedLayer {
public:
    QuantizedLayer(Checker& check, const Case& c, int me) : check_(check), case_(c), me_(me) {}
    ~QuantizedLayer() { npushmemx_moe_destroy(handle_); }
    QuantizedLayer(const QuantizedLayer&) = delete;
    QuantizedLayer& operator=(const QuantizedLayer&) = delete;

    [[nodiscard]] npushmemx_moe_t* handle() const { return handle_; }
    bool open() {
        if (!check_.equal("create", 0, npushmemx_moe_create(&case_.config, &handle_))) return false;
        const std::size_t scales = (hidden() + block() - 1) / block();
        return check_.equal("bytes of a row", (scales_at() + 4 * scales + 63) / 64 * 64, row());
    }

    void run(Run way) {
        const int tokens = case_.tokens_of(me_);
        std::vector<std::byte> in = rows_of(me_);
        if (case_.config.dispatch_input == NPUSHMEMX_MOE_INPUT_QUANTIZED) in = quantized(in);
        std::vector<std::int32_t> ids;
        std::vector<float> weights;
        for (int i = 0; i < tokens * case_.config.top_k; ++i) {
            ids.push_back(case_.expert(me_, i / case_.config.top_k, i % case_.config.top_k));
            weights.push_back(case_.weight(me_, i / case_.config.top_k, i % case_.config.top_k));
        }
        void* x = nullptr;
        finish(way, "dispatch",
               way == Run::returns
                   ? npushmemx_moe_dispatch_nbi(handle_, tokens, in.data(), ids.data(), weights.data(), &x)
                   : npushmemx_moe_dispatch(handle_, tokens, in.data(), ids.data(), weights.data(),
                                            way == Run::received ? nullptr : &x));
        npushmemx_moe_plan_t plan{};
        npushmemx_moe_get_plan(handle_, &plan);
        const auto* rows = static_cast<const std::byte*>(x);
        std::vector<std::byte> gathered;
        if (way == Run::received) {
            gathered = gather(plan);
            rows = gathered.data();
        }
        const std::vector<std::byte> computed = compute(plan, rows);
        if (way == Run::routed)
            check_.equal("routing", 0, npushmemx_moe_set_routing(handle_, tokens, ids.data(), weights.data()));
        std::vector<std::byte> out(static_cast<std::size_t>(tokens) * hidden() * bytes_of(case_.config.output_type));
        finish(way, "combine",
               way == Run::returns ? npushmemx_moe_combine_nbi(handle_, computed.data(), out.data())
                                   : npushmemx_moe_combine(handle_, computed.data(), out.data()));
        check_output(out);
    }

    // The conversion of every row of this PE, against the definition.
    void check_conversion() {
        const std::vector<std::byte> in = rows_of(me_);
        const std::vector<std::byte> narrow = quantized(in);
        for (int token = 0; token < case_.tokens_of(me_); ++token) {
            const std::byte* elements = narrow.data() + static_cast<std::size_t>(token) * row();
            for (std::size_t c = 0; c < hidden(); ++c) check_element(token, c, elements);
            for (std::size_t i = hidden(); i < scales_at(); ++i) check_.that("zeros", elements[i] == std::byte{0});
        }
    }

private:
    void finish(Run way, const char* what, int code) {
        check_.equal(what, 0, code);
        if (way == Run::returns) check_.equal(what, 0, npushmemx_moe_wait(handle_));
    }
    // The received rows in the order of the plan.
    std::vector<std::byte> gather(const npushmemx_moe_plan_t& plan) {
        npushmemx_moe_received_t received{};
        check_.equal("received", 0, npushmemx_moe_get_received(handle_, &received));
        std::vector<std::byte> rows;
        for (std::int64_t i = 0; i < plan.rows; ++i) {
            const std::int32_t index = std::max(received.row_index[i], 0);  // any row in a gap
            const std::byte* from = static_cast<const std::byte*>(received.x) + static_cast<std::size_t>(index) * row();
            rows.insert(rows.end(), from, from + row());
        }
        return rows;
    }

    [[nodiscard]] fakes::QuantizedType type() const { return fakes::quantized_type(case_.config.dispatch_type); }
    [[nodiscard]] std::size_t hidden() const { return static_cast<std::size_t>(case_.config.hidden); }
    [[nodiscard]] std::size_t block() const {
        const std::int32_t given = case_.config.scale_block;
        return std::min(hidden(), given == 0 ? std::size_t{128} : static_cast<std::size_t>(given));
    }
    [[nodiscard]] std::size_t scales_at() const { return (hidden() + 3) / 4 * 4; }
    [[nodiscard]] std::size_t row() const { return static_cast<std::size_t>(npushmemx_moe_row_bytes(handle_)); }
    [[nodiscard]] std::size_t wide_row() const { return hidden() * bytes_of(case_.config.input_type); }

    [[nodiscard]] std::vector<std::byte> rows_of(int rank) const {
        std::vector<std::byte> rows(static_cast<std::size_t>(case_.tokens_of(rank)) * wide_row());
        for (int token = 0; token < case_.tokens_of(rank); ++token)
            for (std::int64_t c = 0; c < case_.config.hidden; ++c)
                store(case_.config.input_type, rows.data() + static_cast<std::size_t>(token) * wide_row(), c,
                      case_.input(rank, token, c));
        return rows;
    }
    std::vector<std::byte> quantized(const std::vector<std::byte>& rows) {
        const auto count = static_cast<std::int64_t>(rows.size() / wide_row());
        std::vector<std::byte> narrow(static_cast<std::size_t>(count) * row(), std::byte{0xEE});
        check_.equal("quantize", 0, npushmemx_moe_quantize(handle_, rows.data(), count, narrow.data()));
        return narrow;
    }
    [[nodiscard]] float scale_of(const std::byte* narrow, std::size_t column) const {
        float scale = 0;
        std::memcpy(&scale, narrow + scales_at() + 4 * (column / block()), sizeof scale);
        return scale;
    }
    // What the experts read: one rounding in float, one to the input type.
    [[nodiscard]] float read(const std::byte* narrow, std::size_t column) const {
        const auto value = static_cast<float>(fakes::value_of(type(), static_cast<int>(narrow[column])));
        return rounded(case_.config.input_type, scale_of(narrow, column) * value);
    }

    [[nodiscard]] double value_of(int token, std::size_t column) const {
        return case_.input(me_, token, static_cast<std::int64_t>(column));
    }
    [[nodiscard]] bool block_is_finite(int token, std::size_t column) const {
        const std::size_t first = column / block() * block();
        for (std::size_t c = first; c < std::min(first + block(), hidden()); ++c)
            if (!std::isfinite(value_of(token, c))) return false;
        return true;
    }
    void check_element(int token, std::size_t column, const std::byte* narrow) {
        const bool floats = case_.config.dispatch_type != NPUSHMEMX_MOE_INT8;
        const double value = value_of(token, column);
        const double scale = scale_of(narrow, column);
        const double seen = fakes::value_of(type(), static_cast<int>(narrow[column]));
        const std::string what = fmt::format("type {}, token {}, column {}: {} became {} times {}",
                                             case_.config.dispatch_type, token, column, value, seen, scale);
        if (!floats && !block_is_finite(token, column)) {
            check_.that(what + ", not a NaN for the block", std::isnan(scale));
        } else if (std::isnan(value) || (std::isinf(value) && case_.config.dispatch_type == NPUSHMEMX_MOE_E4M3)) {
            check_.that(what + ", not a NaN", std::isnan(seen) && !std::isnan(scale));
        } else if (std::isinf(value)) {
            check_.that(what, seen == value && scale > 0);
        } else {
            check_.that(what, std::abs(seen * scale - value) <= fakes::error_bound(type(), value, scale));
        }
    }

    // Compares every row of x with the sender's, and returns the experts' results.
    std::vector<std::byte> compute(const npushmemx_moe_plan_t& plan, const std::byte* x) {
        std::vector<std::byte> out(static_cast<std::size_t>(plan.rows) * wide_row());
        check_.equal("dequantize", 0, npushmemx_moe_dequantize(handle_, x, plan.rows, out.data()));
        std::vector<std::vector<std::byte>> sent;
        for (int rank = 0; rank < case_.ranks; ++rank) sent.push_back(quantized(rows_of(rank)));
        for (int entry = 0; entry < plan.local_experts * plan.ranks; ++entry) {
            const auto rank = static_cast<std::size_t>(entry % plan.ranks);
            const int expert = plan.first_expert + entry / plan.ranks;
            for (int at = plan.offset_table[entry]; at < plan.offset_table[entry] + plan.length_table[entry]; ++at) {
                const std::size_t token = plan.slots[at] / static_cast<std::uint32_t>(case_.config.top_k);
                compute_row(expert, sent[rank].data() + token * row(), x + static_cast<std::size_t>(at) * row(),
                            out.data() + static_cast<std::size_t>(at) * wide_row());
            }
        }
        return out;
    }
    void compute_row(int expert, const std::byte* sent, const std::byte* received, std::byte* wide) {
        check_.that("a row of x", std::memcmp(sent, received, row()) == 0);
        for (std::size_t c = 0; c < hidden(); ++c) {
            const auto column = static_cast<std::int64_t>(c);
            const float in = load(case_.config.input_type, wide, column);
            check_.that("a dequantized element", same(in, read(received, c)));
            store(case_.config.input_type, wide, column, case_.computed(expert, in));
        }
    }

    // The rows that return for a token whose elements the experts read as `in`, as the token's PE reads them, and their
    // weights there.
    struct Returned {
        std::vector<float> row;
        float weight;
    };
    [[nodiscard]] std::vector<Returned> returned(int token, const std::vector<float>& in) const {
        const bool per_choice = case_.config.rows == NPUSHMEMX_MOE_ROW_PER_CHOICE;
        std::vector<Returned> rows;
        for (int holder = 0; holder < (per_choice ? 1 : case_.ranks); ++holder) {
            std::vector<float> sum(in.size(), 0.0F);
            bool any = false;
            for (int k = 0; k < case_.config.top_k; ++k) {
                const int id = case_.expert(me_, token, k);
                if (id < 0 || (!per_choice && case_.rank_of(id) != holder)) continue;
                std::vector<float> row;
                for (const float element : in) row.push_back(case_.computed(id, element));
                const float weight = case_.weight(me_, token, k);
                if (per_choice) {
                    rows.push_back({as_returned(row), weight});
                    continue;
                }
                for (std::size_t c = 0; c < in.size(); ++c) {
                    const float product = weight * row[c];
                    sum[c] = sum[c] + product;
                }
                any = true;
            }
            if (any) rows.push_back({as_returned(sum), 1.0F});
        }
        return rows;
    }
    [[nodiscard]] std::vector<float> as_returned(std::vector<float> row) const {
        if (case_.config.combine_type != 0)
            return fakes::quantized_and_back(fakes::quantized_type(case_.config.combine_type), row, block());
        for (float& element : row) element = rounded(case_.config.input_type, element);
        return row;
    }

    void check_output(const std::vector<std::byte>& out) {
        const std::vector<std::byte> narrow = quantized(rows_of(me_));
        for (int token = 0; token < case_.tokens_of(me_); ++token) {
            std::vector<float> in;
            for (std::size_t c = 0; c < hidden(); ++c)
                in.push_back(read(narrow.data() + static_cast<std::size_t>(token) * row(), c));
            const std::vector<Returned> rows = returned(token, in);
            const std::byte* of_token =
                out.data() + static_cast<std::size_t>(token) * hidden() * bytes_of(case_.config.output_type);
            for (std::size_t c = 0; c < hidden(); ++c) {
                float sum = 0;
                for (const Returned& returned_row : rows) {
                    const float product = returned_row.weight * returned_row.row[c];
                    sum = sum + product;
                }
                const float expected = rounded(case_.config.output_type, sum);
                const float seen = load(case_.config.output_type, of_token, static_cast<std::int64_t>(c));
                if (same(expected, seen)) continue;
                check_.fail(
                    fmt::format("seed {}, type {}, combine_type {}, mode {}, rows {}, token {}, column {}: expected "
                                "{}, saw {}",
                                case_.seed, case_.config.dispatch_type, case_.config.combine_type, case_.config.mode,
                                case_.config.rows, token, c, expected, seen));
                return;
            }
        }
    }

    Checker& check_;
    const Case case_;
    const int me_;
    npushmemx_moe_t* handle_ = nullptr;
};

Case case_of(std::int32_t type, int ranks) {
    Case c;
    c.ranks = ranks;
    c.config.experts = 2 * ranks + 1;
    c.config.top_k = 3;
    c.config.hidden = 300;
    c.config.max_tokens = 7;
    c.config.capacity = 7 * 3 * ranks;
    c.config.dispatch_type = type;
    return c;
}

constexpr std::array types{NPUSHMEMX_MOE_E4M3, NPUSHMEMX_MOE_E5M2, NPUSHMEMX_MOE_INT8};
constexpr std::array combine_types{0, NPUSHMEMX_MOE_E4M3, NPUSHMEMX_MOE_E5M2, NPUSHMEMX_MOE_INT8};

// Sizes and the rest of a configuration, drawn by the seed.
void draw_sizes(Case& c) {
    constexpr std::array<std::int32_t, 6> blocks{0, 1, 128, 50, 1 << 24, 0x7FFFFFFF};
    constexpr std::array<std::int64_t, 4> widths{1, 7, 300, 1024};
    std::uint64_t draws = 0;
    const auto draw = [&](std::size_t count) { return hashed(hashed(c.seed) + ++draws) % count; };
    c.special = draw(2) == 0;
    c.config.combine_type = combine_types[draw(combine_types.size())];
    c.config.scale_block = blocks[draw(blocks.size())];
    c.config.hidden = widths[draw(widths.size())];
    c.config.copy = static_cast<std::int32_t>(draw(4));
    c.config.output_type = static_cast<std::int32_t>(1 + draw(3));
    c.config.ring = static_cast<std::int32_t>(draw(2));
    c.config.audit = 1;
    c.config.expert_alignment = draw(2) == 0 ? 0 : 4;
    c.config.capacity += 4 * c.config.experts;
    // With one row per choice a token may choose an expert too often for fixed slots.
    if (draw(2) == 0 && c.config.rows == NPUSHMEMX_MOE_ROW_PER_RANK) c.config.capacity = NPUSHMEMX_MOE_FIXED_SLOTS;
}

void test_layer(Checker& check, const Job& job, const Case& c) {
    QuantizedLayer layer(check, c, job.me);
    if (!layer.open()) return;
    layer.check_conversion();
    layer.run(Run::waits);
    layer.run(Run::returns);
    layer.run(Run::routed);
    if (c.config.rows == NPUSHMEMX_MOE_ROW_PER_RANK) layer.run(Run::received);
}

void test_layers(Checker& check, const Job& job, int seeds) {
    std::uint64_t seed = 1;
    for (int i = 0; i < seeds; ++i)
        for (const std::int32_t type : types)
            for (const std::int32_t mode : {NPUSHMEMX_MOE_DIRECT, NPUSHMEMX_MOE_CHUNKED, NPUSHMEMX_MOE_STREAM})
                for (const std::int32_t wide : {NPUSHMEMX_MOE_BF16, NPUSHMEMX_MOE_HALF, NPUSHMEMX_MOE_FLOAT})
                    for (const std::int32_t rows : {NPUSHMEMX_MOE_ROW_PER_CHOICE, NPUSHMEMX_MOE_ROW_PER_RANK})
                        for (const std::int32_t input : {NPUSHMEMX_MOE_INPUT_TYPE, NPUSHMEMX_MOE_INPUT_QUANTIZED}) {
                            Case c = case_of(type, job.npes);
                            c.seed = ++seed;
                            c.config.mode = mode;
                            c.config.input_type = wide;
                            c.config.rows = rows;
                            c.config.dispatch_input = input;
                            draw_sizes(c);
                            test_layer(check, job, c);
                        }
    check.no_error("layers");
}

// More tokens than a chunk has.
void test_chunks(Checker& check, const Job& job) {
    for (const std::int32_t rows : {NPUSHMEMX_MOE_ROW_PER_CHOICE, NPUSHMEMX_MOE_ROW_PER_RANK}) {
        Case c = case_of(NPUSHMEMX_MOE_INT8, job.npes);
        c.seed = 5000;
        c.config.mode = NPUSHMEMX_MOE_CHUNKED;
        c.config.rows = rows;
        c.config.hidden = 5;
        c.config.max_tokens = 600;
        c.config.capacity = 600 * 3 * static_cast<std::int64_t>(job.npes);
        c.config.combine_type = NPUSHMEMX_MOE_E4M3;
        while (c.tokens_of(0) <= 256) ++c.seed;
        test_layer(check, job, c);
    }
    check.no_error("chunks");
}

void test_refusals(Checker& check, const Job& job) {
    npushmemx_moe_t* handle = nullptr;
    const auto create_fails = [&](const Case& c, int code, std::initializer_list<std::string_view> words) {
        check.equal("create", code, npushmemx_moe_create(&c.config, &handle));
        check.failed_with("create", code, words);
        check.that("no handle", handle == nullptr);
    };
    Case c = case_of(3, job.npes);
    create_fails(c, NPUSHMEM_E_ARGUMENT, {"dispatch_type is 3, must be 0 (the input type), 4 (e4m3)"});
    c = case_of(0, job.npes);
    c.config.combine_type = NPUSHMEMX_MOE_FLOAT;
    create_fails(c, NPUSHMEM_E_ARGUMENT, {"combine_type is 3, must be 0 (the input type), 4 (e4m3)"});
    c = case_of(0, job.npes);
    c.config.dispatch_input = NPUSHMEMX_MOE_INPUT_QUANTIZED;
    create_fails(c, NPUSHMEM_E_ARGUMENT, {"dispatch_input is 1 (quantized), but dispatch_type is 0", "4 (e4m3)"});
    c = case_of(NPUSHMEMX_MOE_INT8, job.npes);
    c.config.dispatch_input = 2;
    create_fails(c, NPUSHMEM_E_ARGUMENT, {"dispatch_input is 2, must be from 0 to 1"});
    c = case_of(NPUSHMEMX_MOE_INT8, job.npes);
    c.config.scale_block = -1;
    create_fails(c, NPUSHMEM_E_ARGUMENT, {"scale_block is -1, must be from 0 to"});
    if (job.npes > 1) {
        create_fails(case_of(job.me == 0 ? NPUSHMEMX_MOE_INT8 : NPUSHMEMX_MOE_E4M3, job.npes), NPUSHMEM_E_MISMATCH,
                     {"disagree on dispatch_type: rank 0 has 6, rank 1 has 4"});
        c = case_of(0, job.npes);
        c.config.combine_type = job.me == 0 ? NPUSHMEMX_MOE_INT8 : 0;
        create_fails(c, NPUSHMEM_E_MISMATCH, {"disagree on combine_type: rank 0 has 6, rank 1 has 0"});
        c = case_of(NPUSHMEMX_MOE_INT8, job.npes);
        c.config.scale_block = job.me == 0 ? 0 : 64;
        create_fails(c, NPUSHMEM_E_MISMATCH, {"disagree on scale_block: rank 0 has 128, rank 1 has 64"});
        // The rows that PE 0 alone would quantize are more than it can allocate.
        c = case_of(NPUSHMEMX_MOE_INT8, job.npes);
        c.config.hidden = c.config.max_tokens = 1 << 24;
        c.config.dispatch_input = job.me == 0 ? NPUSHMEMX_MOE_INPUT_TYPE : NPUSHMEMX_MOE_INPUT_QUANTIZED;
        create_fails(c, NPUSHMEM_E_MEMORY, {"cannot allocate private memory for 16777216 rows"});
    }
    // The same layout by other numbers, and numbers that mean nothing without a dispatch_type.
    for (const std::int32_t type : {NPUSHMEMX_MOE_INT8, 0}) {
        c = case_of(type, job.npes);
        c.config.scale_block = job.me == 0 ? 300 : type == 0 ? 64 : 0x7FFFFFFF;
        check.equal("the same layout", 0, npushmemx_moe_create(&c.config, &handle));
        npushmemx_moe_destroy(handle);
        handle = nullptr;
    }
    check.equal("NULL", std::int64_t{0}, npushmemx_moe_row_bytes(nullptr));
    check.failed_with("NULL", NPUSHMEM_E_ARGUMENT, {"handle is NULL"});
}

void test_refused_conversions(Checker& check, const Job& job) {
    npushmemx_moe_t* handle = nullptr;
    Case c = case_of(NPUSHMEMX_MOE_E4M3, job.npes);
    c.config.input_type = NPUSHMEMX_MOE_FLOAT;
    check.equal("create", 0, npushmemx_moe_create(&c.config, &handle));
    std::vector<float> wide(600);
    std::vector<float> narrow(300);
    const auto fails = [&](int code, int status, std::initializer_list<std::string_view> words) {
        check.equal("conversion", code, status);
        check.failed_with("conversion", code, words);
    };
    fails(NPUSHMEM_E_ARGUMENT, npushmemx_moe_quantize(handle, nullptr, 1, narrow.data()), {"input type", "null"});
    fails(NPUSHMEM_E_ARGUMENT, npushmemx_moe_dequantize(handle, narrow.data(), -1, wide.data()), {"rows is -1"});
    fails(NPUSHMEM_E_ARGUMENT,
          npushmemx_moe_quantize(handle, wide.data(), 1, reinterpret_cast<std::byte*>(narrow.data()) + 2),
          {"quantized rows", "align"});
    fails(NPUSHMEM_E_ARGUMENT, npushmemx_moe_quantize(handle, wide.data(), 1, wide.data() + 1), {"overlap"});
    fails(NPUSHMEM_E_ARGUMENT, npushmemx_moe_quantize(nullptr, wide.data(), 1, narrow.data()), {"handle is NULL"});
    fails(NPUSHMEM_E_ARGUMENT, npushmemx_moe_dequantize(handle, wide.data() + 299, 1, wide.data()), {"overlap"});
    fails(NPUSHMEM_E_ARGUMENT,
          npushmemx_moe_dequantize(handle, narrow.data(), 1, reinterpret_cast<std::byte*>(wide.data()) + 2),
          {"the input type", "align"});
    check.equal("nothing", 0, npushmemx_moe_quantize(handle, nullptr, 0, nullptr));
    npushmemx_moe_destroy(handle);

    // Also a program from before the structure had dispatch_input.
    c.config.dispatch_type = 0;
    c.config.struct_size = offsetof(npushmemx_moe_config_t, dispatch_input);
    c.config.dispatch_input = 99;
    check.equal("an older structure", 0, npushmemx_moe_create(&c.config, &handle));
    check.equal("bytes of a row", std::int64_t{1200}, npushmemx_moe_row_bytes(handle));
    fails(NPUSHMEM_E_UNSUPPORTED, npushmemx_moe_quantize(handle, wide.data(), 1, narrow.data()),
          {"have no scales", "NPUSHMEMX_MOE_E4M3"});
    npushmemx_moe_destroy(handle);
}

// Quantized rows are not what a combine takes, and must be aligned to their scales.
void test_refused_calls(Checker& check, const Job& job, std::int32_t rows) {
    npushmemx_moe_t* handle = nullptr;
    Case c = case_of(NPUSHMEMX_MOE_E4M3, job.npes);
    c.config.rows = rows;
    c.config.dispatch_input = NPUSHMEMX_MOE_INPUT_QUANTIZED;
    check.equal("create", 0, npushmemx_moe_create(&c.config, &handle));
    const auto row = static_cast<std::size_t>(npushmemx_moe_row_bytes(handle));
    std::vector<float> in(2 * row / sizeof(float) + 1);
    // The last expert and one of this PE: every PE has rows.
    std::vector<std::int32_t> ids(6, -1);
    const std::vector<float> weights(6, 1.0F);
    ids[0] = c.config.experts - 1;
    for (int expert = 0; expert < c.config.experts; ++expert)
        if (c.rank_of(expert) == job.me) ids[3] = expert;
    void* x = nullptr;
    check.equal(
        "misaligned", NPUSHMEM_E_ARGUMENT,
        npushmemx_moe_dispatch(handle, 2, reinterpret_cast<std::byte*>(in.data()) + 2, ids.data(), weights.data(), &x));
    check.failed_with("misaligned", NPUSHMEM_E_ARGUMENT, {"in", "align"});
    for (const bool received : {false, true}) {
        if (received && rows == NPUSHMEMX_MOE_ROW_PER_CHOICE) continue;
        check.equal("dispatch", 0, npushmemx_moe_dispatch(handle, 2, in.data(), ids.data(), weights.data(), &x));
        npushmemx_moe_received_t brought{};
        if (received) check.equal("received", 0, npushmemx_moe_get_received(handle, &brought));
        std::vector<std::byte> out(2 * 2 * static_cast<std::size_t>(c.config.hidden));
        check.equal("combine", NPUSHMEM_E_ARGUMENT,
                    npushmemx_moe_combine(handle, received ? brought.x : x, out.data()));
        check.failed_with("combine", NPUSHMEM_E_ARGUMENT,
                          {"x is in the quantized rows of the dispatch", "npushmemx_moe_dequantize"});
        check.equal("reset", 0, npushmemx_moe_reset(handle));
    }
    npushmemx_moe_destroy(handle);
}

}  // namespace
}  // namespace npushmem::api_test

// Argument: seeds; 1 by default.
int main(int argc, char** argv) {
    using namespace npushmem::api_test;
    const int seeds = argc > 1 ? std::atoi(argv[1]) : 1;
    return run_family("quantized rows", [&](Checker& check, const Job& job) {
        test_layers(check, job, seeds);
        test_chunks(check, job);
        test_refusals(check, job);
        test_refused_conversions(check, job);
        for (const std::int32_t rows : {NPUSHMEMX_MOE_ROW_PER_CHOICE, NPUSHMEMX_MOE_ROW_PER_RANK})
            test_refused_calls(check, job, rows);
    });
}
