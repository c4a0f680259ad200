// SPDX-License-Identifier: BSD-3-Clause
// Layers whose dispatch brings quantized rows, through the C API: every type, mode and kind of input, and rejections.
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
#include <string_view>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/moe/rank_layer.hpp"

namespace npushmem::api_test {
namespace {

// The value of an 8-bit element by the definition of its type.
double value_of(std::int32_t type, std::uint8_t element) {
    if (type == NPUSHMEMX_MOE_INT8) return static_cast<std::int8_t>(element);
    const int fraction_bits = type == NPUSHMEMX_MOE_E4M3 ? 3 : 2;
    const int bias = type == NPUSHMEMX_MOE_E4M3 ? 7 : 15;
    const int magnitude = element & 0x7F;
    const int exponent = magnitude >> fraction_bits;
    const int fraction = magnitude & ((1 << fraction_bits) - 1);
    const double sign = element >= 0x80 ? -1.0 : 1.0;
    if (type == NPUSHMEMX_MOE_E4M3 && magnitude == 0x7F) return std::nan("");
    if (type == NPUSHMEMX_MOE_E5M2 && exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
    return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

// The stated bound of the error.
double bound_of(std::int32_t type, double value, double scale) {
    const double relative = type == NPUSHMEMX_MOE_E4M3 ? 0x1p-4 : type == NPUSHMEMX_MOE_E5M2 ? 0x1p-3 : 0;
    const double absolute = type == NPUSHMEMX_MOE_E4M3 ? 0x1p-10 : type == NPUSHMEMX_MOE_E5M2 ? 0x1p-17 : 0.5;
    return (std::abs(value) * relative + scale * absolute) * (1 + 0x1p-21) + std::abs(value) * 0x1p-21;
}

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

    void run() {
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
        check_.equal("dispatch", 0, npushmemx_moe_dispatch(handle_, tokens, in.data(), ids.data(), weights.data(), &x));
        npushmemx_moe_plan_t plan{};
        npushmemx_moe_get_plan(handle_, &plan);
        const std::vector<std::byte> computed = compute(plan, static_cast<const std::byte*>(x));
        std::vector<std::byte> out(static_cast<std::size_t>(tokens) * hidden() * bytes_of(case_.config.output_type));
        check_.equal("combine", 0, npushmemx_moe_combine(handle_, computed.data(), out.data()));
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
    [[nodiscard]] std::int32_t type() const { return case_.config.dispatch_type; }
    [[nodiscard]] std::size_t hidden() const { return static_cast<std::size_t>(case_.config.hidden); }
    [[nodiscard]] std::size_t block() const {
        return case_.config.scale_block == 0 ? 128 : static_cast<std::size_t>(case_.config.scale_block);
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
        const auto value = static_cast<float>(value_of(type(), static_cast<std::uint8_t>(narrow[column])));
        return rounded(case_.config.input_type, scale_of(narrow, column) * value);
    }

    void check_element(int token, std::size_t column, const std::byte* narrow) {
        const double value = case_.input(me_, token, static_cast<std::int64_t>(column));
        const double scale = scale_of(narrow, column);
        const double seen = value_of(type(), static_cast<std::uint8_t>(narrow[column]));
        const std::string what = fmt::format("type {}, token {}, column {}", type(), token, column);
        if (std::isnan(value) || (std::isinf(value) && type() != NPUSHMEMX_MOE_E5M2)) {
            check_.that(what + ": no number", std::isnan(seen * scale));
        } else if (std::isinf(value)) {
            check_.that(what + ": infinity", seen == value);
        } else if (!std::isnan(scale)) {
            check_.that(fmt::format("{}: {} became {} times {}", what, value, seen, scale),
                        std::abs(seen * scale - value) <= bound_of(type(), value, scale));
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

    void check_output(const std::vector<std::byte>& out) {
        const std::vector<std::byte> narrow = quantized(rows_of(me_));
        for (int token = 0; token < case_.tokens_of(me_); ++token) {
            const std::byte* of_token =
                out.data() + static_cast<std::size_t>(token) * hidden() * bytes_of(case_.config.output_type);
            for (std::size_t c = 0; c < hidden(); ++c) {
                const float in = read(narrow.data() + static_cast<std::size_t>(token) * row(), c);
                const float seen = load(case_.config.output_type, of_token, static_cast<std::int64_t>(c));
                check_.that(fmt::format("output of token {}, column {}", token, c),
                            same(case_.output_of(me_, token, in), seen));
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

void test_layers(Checker& check, const Job& job, int seeds) {
    constexpr std::array<std::int32_t, 5> blocks{0, 1, 128, 50, 1 << 24};
    constexpr std::array<std::int64_t, 4> widths{1, 7, 300, 1024};
    std::uint64_t number = 1;
    for (int i = 0; i < seeds; ++i) {
        for (const std::int32_t type : types) {
            for (const std::int32_t mode : {NPUSHMEMX_MOE_DIRECT, NPUSHMEMX_MOE_CHUNKED, NPUSHMEMX_MOE_STREAM}) {
                Case c = case_of(type, job.npes);
                c.seed = ++number;
                c.special = number % 2 == 0;
                c.config.mode = mode;
                c.config.rows = static_cast<std::int32_t>(number / 2 % 2);
                c.config.dispatch_input = static_cast<std::int32_t>(number / 3 % 2);
                c.config.scale_block = blocks[number % blocks.size()];
                c.config.hidden = widths[number % widths.size()];
                c.config.copy = static_cast<std::int32_t>(number % 4);
                c.config.input_type = number % 3 == 0 ? NPUSHMEMX_MOE_FLOAT : NPUSHMEMX_MOE_BF16;
                c.config.audit = 1;
                QuantizedLayer layer(check, c, job.me);
                if (!layer.open()) return;
                layer.check_conversion();
                layer.run();
                layer.run();
            }
        }
    }
    check.no_error("layers");
}

void test_refusals(Checker& check, const Job& job) {
    npushmemx_moe_t* handle = nullptr;
    const auto create_fails = [&](const Case& c, int code, std::initializer_list<std::string_view> words) {
        check.equal("create", code, npushmemx_moe_create(&c.config, &handle));
        check.failed_with("create", code, words);
        check.that("no handle", handle == nullptr);
    };
    Case c = case_of(3, job.npes);
    create_fails(c, NPUSHMEM_E_ARGUMENT, {"dispatch type is 3, must be 0 (the input type), 4 (e4m3)"});
    c = case_of(0, job.npes);
    c.config.dispatch_input = NPUSHMEMX_MOE_INPUT_QUANTIZED;
    create_fails(c, NPUSHMEM_E_ARGUMENT, {"that is 0 (the input type)"});
    c = case_of(NPUSHMEMX_MOE_INT8, job.npes);
    c.config.dispatch_input = 2;
    create_fails(c, NPUSHMEM_E_ARGUMENT, {"dispatch_input is 2, must be from 0 to 1"});
    c = case_of(NPUSHMEMX_MOE_INT8, job.npes);
    c.config.scale_block = -1;
    create_fails(c, NPUSHMEM_E_ARGUMENT, {"scale_block is -1, must be from 0 to"});
    if (job.npes > 1) {
        create_fails(case_of(job.me == 0 ? NPUSHMEMX_MOE_INT8 : NPUSHMEMX_MOE_E4M3, job.npes), NPUSHMEM_E_MISMATCH,
                     {"disagree on dispatch type: rank 0 has 6, rank 1 has 4"});
        c = case_of(NPUSHMEMX_MOE_INT8, job.npes);
        c.config.scale_block = job.me == 0 ? 0 : 64;
        create_fails(c, NPUSHMEM_E_MISMATCH, {"disagree on scale_block: rank 0 has 128, rank 1 has 64"});
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

}  // namespace
}  // namespace npushmem::api_test

// Argument: seeds; 4 by default.
int main(int argc, char** argv) {
    using namespace npushmem::api_test;
    const int seeds = argc > 1 ? std::atoi(argv[1]) : 4;
    return run_family("quantized rows", [&](Checker& check, const Job& job) {
        test_layers(check, job, seeds);
        test_refusals(check, job);
        test_refused_conversions(check, job);
    });
}
