// SPDX-License-Identifier: BSD-3-Clause
// Fixture for Combine: one thread per PE, each with a device, buffers, payload and reference.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/moe/payload.hpp"
#include "core/moe/combine.hpp"
#include "core/moe/stream/row_order.hpp"
#include "tests/unit/core/moe/routing_cases.hpp"
#include "tests/unit/core/moe/thread_pe.hpp"
#include "tests/unit/core/moe/typed_element.hpp"

namespace npushmem::moe {

class CombinePe : public ThreadPe {
public:
    CombinePe(fakes::ThreadWorld& world, const CombineConfig& config, int pe, int blocks, bool window)
        : ThreadPe(world, pe, blocks, window), config_(config) {}
    // A second layer on the same PE, memory and device; not opened.
    CombinePe(const CombinePe& other) : ThreadPe(other), config_(other.config_) {}
    CombinePe& operator=(const CombinePe&) = delete;
    ~CombinePe() = default;

    [[nodiscard]] CombineConfig& config() { return config_; }
    [[nodiscard]] Combine& engine() { return *engine_; }
    [[nodiscard]] const std::vector<std::byte>& out() const { return out_; }
    [[nodiscard]] std::byte* x_data() { return symmetric_ != nullptr ? symmetric_ : x_.data(); }
    [[nodiscard]] std::byte* out_data() { return out_.data(); }
    void use_random_payload() { random_payload_ = true; }
    // Collective: x lies in symmetric memory from now on.
    std::byte* use_symmetric_x() {
        const Rows rows = config_.slots() * static_cast<std::uint64_t>(memory().n_pes());
        return symmetric_ = memory().allocate(bytes_of(rows * 2, config_.row_bytes())).value();
    }
    // Null: in private memory.
    void put_x_in(std::byte* symmetric) { symmetric_ = symmetric; }

    bool open() {
        auto made = Combine::create(config_, memory(), device());
        if (!made.ok()) return succeeded(made.status());
        engine_ = std::move(made).value();
        return true;
    }
    void close() { engine_.reset(); }

    // Sets this PE's part of the routing in the library and as the expectation.
    bool route(const Routing& routing) {
        adopt(routing);
        return succeeded(engine_->set_routing(own_));
    }
    // Sets it as the expectation only.
    void adopt(const Routing& routing) {
        routing_ = routing;
        own_ = routing_.rank(static_cast<std::size_t>(pe()));
    }

    void fill(std::uint64_t salt) {
        const CombinePlan& plan = engine_->plan();
        x_.assign(bytes_of(plan.rows, config_.row_bytes()).value(), std::byte{0x5A});
        if (symmetric_ != nullptr) std::ranges::copy(x_, symmetric_);
        for (std::int32_t expert = 0; expert < plan.local_experts; ++expert) {
            for (std::int32_t rank = 0; rank < plan.ranks; ++rank) fill_fragment(plan, expert, rank, salt);
        }
        out_.assign(own_.tokens(config_.top_k) * out_row(), std::byte{0xA5});
    }

    bool combine() { return succeeded(engine_->combine(x_data(), out_.data())); }

    // Returns "" or the first element that differs from the reference.
    std::string first_difference(std::uint64_t salt) {
        for (std::size_t token = 0; token < own_.tokens(config_.top_k); ++token) {
            for (std::int64_t c = 0; c < config_.hidden; ++c) {
                const auto column = static_cast<std::size_t>(c);
                const std::byte* seen = out_.data() + token * out_row() + column * element_bytes(config_.output);
                std::byte expected[4];
                write_element(config_.output, expected, expected_sum(token, column, salt));
                if (std::memcmp(seen, expected, element_bytes(config_.output)) == 0) continue;
                return fmt::format("PE {}, token {}, column {}: expected {}, seen {}", pe(), token, column,
                                   read_element(config_.output, expected), read_element(config_.output, seen));
            }
        }
        return "";
    }

private:
    [[nodiscard]] std::size_t out_row() const {
        return static_cast<std::size_t>(config_.hidden) * element_bytes(config_.output);
    }
    [[nodiscard]] float value(const RowKey& key, std::size_t column) const {
        const std::uint64_t seed = row_seed(key);
        return random_payload_ ? random_value(seed, column) : exact_value(seed, column);
    }

    void fill_fragment(const CombinePlan& plan, std::int32_t expert, std::int32_t rank, std::uint64_t salt) {
        const Fragment fragment = plan.fragment(expert, rank);
        for (std::uint64_t row = fragment.first.value(); row < fragment.first.value() + fragment.count.value(); ++row) {
            const RowKey key{salt, rank, plan.slots[row], plan.first_expert + expert};
            std::byte* target = x_data() + bytes_of(Rows{row}, config_.row_bytes()).value();
            for (std::size_t c = 0; c < static_cast<std::size_t>(config_.hidden); ++c) {
                write_element(config_.input, target + c * element_bytes(config_.input), value(key, c));
            }
        }
    }

    float expected_sum(std::size_t token, std::size_t column, std::uint64_t salt) const {
        const auto top_k = static_cast<std::size_t>(config_.top_k);
        const auto experts = own_.experts.subspan(token * top_k, top_k);
        const auto weights = own_.weights.subspan(token * top_k, top_k);
        return reference_sum(experts, weights, [&](std::size_t k) {
            return value({salt, pe(), static_cast<std::uint32_t>(token * top_k + k), experts[k]}, column);
        });
    }

    CombineConfig config_;
    std::unique_ptr<Combine> engine_;
    Routing routing_;
    RankRouting own_;
    bool random_payload_ = false;
    std::vector<std::byte> x_;
    std::byte* symmetric_ = nullptr;
    std::vector<std::byte> out_;
};

class CombineFixture : public ThreadFixture<CombinePe, CombineConfig> {
public:
    CombineFixture(int pes, const CombineConfig& config, int blocks = 20, bool window = true, std::size_t heap = 0)
        : ThreadFixture(pes, config, heap > 0 ? heap : heap_for(pes, config), blocks, window) {}

private:
    static std::size_t heap_for(int pes, const CombineConfig& config) {
        const SlotLayout layout(pes, config.slots(), config.row_bytes());
        const Rows ring_rows{static_cast<std::uint64_t>(config.ring_rows)};
        const RingLayout rings(pes, row_ring_shape(config.row_bytes(), config.slots(), ring_rows));
        return 2 * (layout.total().value() + rings.total().value() + 32 * config.slots().value() + 65536);
    }
};

inline CombineConfig config_for(const CaseShape& shape, std::int64_t hidden) {
    CombineConfig config;
    config.experts = shape.experts;
    config.top_k = shape.top_k;
    config.hidden = hidden;
    config.max_tokens = std::max(shape.tokens, 1);
    config.audit = true;
    config.timeout = std::chrono::seconds(60);
    return config;
}

// Runs `calls` calls in a row, each with its own payload. Every result must be exact, audited, and with intact
// canaries.
inline void expect_exact(const Routing& routing, const CombineConfig& config, int calls = 3, int blocks = 20) {
    CombineFixture bench(routing.ranks(), config, blocks);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open()) << pe.error();
        ASSERT_TRUE(pe.route(routing)) << pe.error();
        for (int call = 0; call < calls; ++call) {
            pe.fill(static_cast<std::uint64_t>(call));
            ASSERT_TRUE(pe.combine()) << pe.error();
            ASSERT_EQ(pe.first_difference(static_cast<std::uint64_t>(call)), "");
        }
        ASSERT_TRUE(pe.engine().check_memory().ok());
    });
}

inline void expect_exact(const CaseShape& shape, const CombineConfig& config, int calls = 3, int blocks = 20) {
    expect_exact(random_routing(shape), config, calls, blocks);
}

}  // namespace npushmem::moe
