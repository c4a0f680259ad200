// SPDX-License-Identifier: BSD-3-Clause
// Fixture for Layer: one thread per PE, each with a device, tokens, experts and a plain reference.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/moe/payload.hpp"
#include "core/moe/layer.hpp"
#include "core/moe/stream/row_order.hpp"
#include "tests/unit/core/moe/routing_cases.hpp"
#include "tests/unit/core/moe/thread_pe.hpp"
#include "tests/unit/core/moe/typed_element.hpp"

namespace npushmem::moe {

class LayerPe : public ThreadPe {
public:
    LayerPe(fakes::ThreadWorld& world, const CombineConfig& config, int pe, int blocks, bool window)
        : ThreadPe(world, pe, blocks, window), config_(config) {}
    // A second layer on the same PE, memory and device; not opened.
    LayerPe(const LayerPe& other) : ThreadPe(other), config_(other.config_) {}
    LayerPe& operator=(const LayerPe&) = delete;
    ~LayerPe() = default;

    [[nodiscard]] CombineConfig& config() { return config_; }
    [[nodiscard]] Layer& engine() { return *engine_; }
    [[nodiscard]] const CombinePlan& plan() { return engine_->combine().plan(); }

    bool open() {
        auto made = Layer::create(config_, memory(), device());
        if (!made.ok()) return succeeded(made.status());
        engine_ = std::move(made).value();
        return true;
    }
    void close() { engine_.reset(); }
    // Collective: the experts' rows lie in symmetric memory, or in private memory, from now on.
    void use_symmetric_rows(bool symmetric) {
        std::byte* const rows =
            memory()
                .allocate(bytes_of(Rows{static_cast<std::uint64_t>(config_.capacity)}, config_.row_bytes()))
                .value();
        private_.resize(
            symmetric ? 0 : bytes_of(Rows{static_cast<std::uint64_t>(config_.capacity)}, config_.row_bytes()).value());
        experts_memory_ = symmetric ? rows : private_.data();
    }
    bool reset() { return succeeded(engine_->reset()); }

    // Sends the tokens of this PE; their elements are small whole numbers that follow from salt, PE, token and column.
    bool dispatch(const Routing& routing, std::uint64_t salt) {
        const RankRouting own = routing.rank(static_cast<std::size_t>(pe()));
        write_tokens(own, salt);
        return succeeded(engine_->dispatch(in_.data(), own)) && use_rows(salt);
    }
    // The same by the routing of the last dispatch.
    bool dispatch_cached(const Routing& routing, std::uint64_t salt) {
        write_tokens(routing.rank(static_cast<std::size_t>(pe())), salt);
        return succeeded(engine_->start_cached_dispatch(in_.data())) && succeeded(engine_->wait()) && use_rows(salt);
    }
    bool dispatch_without_tokens_memory(const Routing& routing) {
        return succeeded(engine_->dispatch(nullptr, routing.rank(static_cast<std::size_t>(pe()))));
    }

    // Returns "" or the first difference to the plain reference, in tables, slots, and every byte of x.
    std::string difference(const Routing& routing, std::uint64_t salt) {
        const ExpertPlacement placement(config_.experts, memory().n_pes());
        const CombinePlan expected = build_combine_plan(views_of(routing), placement, pe()).value();
        if (plan().offset_table != expected.offset_table) return fmt::format("PE {}: offset_table", pe());
        if (plan().length_table != expected.length_table) return fmt::format("PE {}: length_table", pe());
        if (plan().slots != expected.slots || plan().rows != expected.rows) return fmt::format("PE {}: slots", pe());
        for (std::int32_t entry = 0; entry < expected.local_experts * expected.ranks; ++entry) {
            const Fragment f = expected.fragment(entry / expected.ranks, entry % expected.ranks);
            for (std::uint64_t at = f.first.value(); at < f.first.value() + f.count.value(); ++at) {
                if (!is_row(at, entry % expected.ranks, expected.slots[at], salt)) {
                    return fmt::format("PE {}: row {} of x, from rank {}", pe(), at, entry % expected.ranks);
                }
            }
        }
        return "";
    }

    // Every expert works on its rows in place: it adds its own number to each element.
    void run_experts(const Routing& routing, std::uint64_t salt) {
        for (std::int32_t entry = 0; entry < plan().local_experts * plan().ranks; ++entry) {
            const std::int32_t expert = plan().first_expert + entry / plan().ranks;
            const Fragment f = plan().fragment(entry / plan().ranks, entry % plan().ranks);
            for (std::uint64_t at = f.first.value(); at < f.first.value() + f.count.value(); ++at) {
                add_to_row(rows_ + at * row(), expert);
            }
        }
        out_.assign(routing.rank(static_cast<std::size_t>(pe())).tokens(config_.top_k) * out_row(), std::byte{0xA5});
        salt_ = salt;
    }
    bool combine() { return succeeded(engine_->combine_rows(rows_, out_.data())); }

    // Refused.
    bool combine_nothing() { return succeeded(engine_->combine_rows(nullptr, out_.data())); }
    // Sets that rank's word to a call that the protocol cannot produce.
    void corrupt_counts_of(int rank) {
        const std::uint64_t call = 1000;
        std::memcpy(in_region(layout().counts(rank)), &call, sizeof call);
    }
    void corrupt_canary() { in_region(layout().canary())[3] ^= std::byte{1}; }

    // Returns "" or the first element of the combine's output that differs from the reference.
    std::string output_difference(const Routing& routing) {
        const RankRouting own = routing.rank(static_cast<std::size_t>(pe()));
        const auto top_k = static_cast<std::size_t>(config_.top_k);
        for (std::size_t token = 0; token < own.tokens(config_.top_k); ++token) {
            const auto experts = own.experts.subspan(token * top_k, top_k);
            const auto weights = own.weights.subspan(token * top_k, top_k);
            for (std::size_t column = 0; column < static_cast<std::size_t>(config_.hidden); ++column) {
                const auto row_value = [&](std::size_t k) {
                    return value(pe(), static_cast<std::uint32_t>(token), column, salt_) + shift(experts[k]);
                };
                const float expected = config_.rows_per == RowsPer::rank ? tree(experts, weights, row_value)
                                                                         : reference_sum(experts, weights, row_value);
                const std::byte* seen = out_.data() + token * out_row() + column * element_bytes(config_.output);
                std::byte bytes[4];
                write_element(config_.output, bytes, expected);
                if (std::memcmp(seen, bytes, element_bytes(config_.output)) == 0) continue;
                return fmt::format("PE {}, token {}, column {}: expected {}, seen {}", pe(), token, column, expected,
                                   read_element(config_.output, seen));
            }
        }
        return "";
    }

private:
    void write_tokens(const RankRouting& own, std::uint64_t salt) {
        in_.assign(own.tokens(config_.top_k) * row(), std::byte{0});
        for (std::uint32_t token = 0; token < own.tokens(config_.top_k); ++token) {
            write_row(in_.data() + token * row(), pe(), token, 0, salt);
        }
    }
    // With one row per rank the experts get copies in some calls, and read the received rows by index in others.
    bool use_rows(std::uint64_t salt) {
        const RankRows* received = salt % 2 == 1 ? engine_->combine().rank_rows() : nullptr;
        rows_ = received == nullptr ? engine_->expert_rows().value() : rows_by_index(received->source);
        if (experts_memory_ != nullptr) {
            const std::size_t bytes = bytes_of(plan().rows, config_.row_bytes()).value();
            std::copy_n(rows_, bytes, experts_memory_);
            rows_ = experts_memory_;
        }
        return true;
    }
    [[nodiscard]] DispatchLayout layout() { return DispatchLayout::of(config_, memory().n_pes()); }
    template <class Value>
    float tree(std::span<const std::int32_t> experts, std::span<const float> weights, const Value& row_value) {
        const ExpertPlacement placement(config_.experts, memory().n_pes());
        const auto rounded = [&](float sum) {
            std::byte bytes[4];
            write_element(config_.input, bytes, sum);
            return read_element(config_.input, bytes);
        };
        return reference_tree(
            experts, weights, row_value, memory().n_pes(), [&](std::int32_t e) { return placement.rank_of(e); },
            rounded);
    }
    std::byte* rows_by_index(const std::vector<std::int32_t>& source) {
        indexed_.resize(source.size() * row());
        for (std::size_t at = 0; at < source.size(); ++at) {
            std::memcpy(indexed_.data() + at * row(), engine_->x() + static_cast<std::size_t>(source[at]) * row(),
                        row());
        }
        return indexed_.data();
    }
    [[nodiscard]] std::byte* in_region(Bytes offset) { return engine_->x() - layout().x().value() + offset.value(); }
    [[nodiscard]] std::size_t row() const { return config_.row_bytes().value(); }
    [[nodiscard]] std::size_t out_row() const {
        return static_cast<std::size_t>(config_.hidden) * element_bytes(config_.output);
    }
    static float value(int rank, std::uint32_t token, std::size_t column, std::uint64_t salt) {
        return exact_value(row_seed({salt, rank, token, 0}), column);
    }
    static float shift(std::int32_t expert) { return static_cast<float>(expert % 7 - 3); }

    void write_row(std::byte* target, int rank, std::uint32_t token, float plus, std::uint64_t salt) const {
        const std::size_t size = element_bytes(config_.input);
        for (std::size_t c = 0; c < static_cast<std::size_t>(config_.hidden); ++c) {
            write_element(config_.input, target + c * size, value(rank, token, c, salt) + plus);
        }
    }
    void add_to_row(std::byte* target, std::int32_t expert) const {
        const std::size_t size = element_bytes(config_.input);
        for (std::size_t c = 0; c < static_cast<std::size_t>(config_.hidden); ++c) {
            write_element(config_.input, target + c * size,
                          read_element(config_.input, target + c * size) + shift(expert));
        }
    }
    [[nodiscard]] bool is_row(std::uint64_t at, int rank, std::uint32_t slot, std::uint64_t salt) const {
        std::vector<std::byte> expected(row());
        write_row(expected.data(), rank, slot / static_cast<std::uint32_t>(config_.top_k), 0, salt);
        return std::memcmp(rows_ + at * row(), expected.data(), row()) == 0;
    }

    CombineConfig config_;
    std::unique_ptr<Layer> engine_;
    std::vector<std::byte> in_;
    std::vector<std::byte> out_;
    std::byte* rows_ = nullptr;  // of the experts
    std::vector<std::byte> indexed_;
    std::vector<std::byte> private_;
    std::byte* experts_memory_ = nullptr;  // null: where the dispatch has left the rows
    std::uint64_t salt_ = 0;
};

class LayerFixture : public ThreadFixture<LayerPe, CombineConfig> {
public:
    LayerFixture(int pes, const CombineConfig& config, int blocks = 20, bool window = true)
        : ThreadFixture(pes, config, heap_for(pes, config), blocks, window) {}

private:
    // Of two layers.
    static std::size_t heap_for(int pes, const CombineConfig& config) {
        const SlotLayout layout(pes, config.slots(), config.row_bytes());
        const RingLayout rings(pes, row_ring_shape(config.row_bytes(), config.slots(), Rows{0}));
        const DispatchLayout dispatch(pes, config.experts, Rows{static_cast<std::uint64_t>(config.capacity)},
                                      config.row_bytes());
        const std::uint64_t choices = static_cast<std::uint64_t>(config.capacity * config.top_k) * sizeof(Choice);
        const Bytes rows =
            aligned_up(bytes_of(Rows{static_cast<std::uint64_t>(config.capacity)}, config.row_bytes()), 128);
        return 2 * (layout.total().value() + rings.total().value() + dispatch.total().value() + choices + rows.value() +
                    32 * config.slots().value() + 65536);
    }
};

// A capacity that the routing cannot exceed.
inline CombineConfig layer_config(const CaseShape& shape, std::int64_t hidden) {
    CombineConfig config;
    config.experts = shape.experts;
    config.top_k = shape.top_k;
    config.hidden = hidden;
    config.max_tokens = std::max(shape.tokens, 1);
    config.capacity = std::max(shape.tokens, 1) * shape.top_k * shape.ranks;
    config.audit = true;
    config.timeout = std::chrono::seconds(60);
    return config;
}

// Runs one whole layer: dispatch, experts, combine; compares all results.
inline void expect_layer(LayerPe& pe, const Routing& routing, std::uint64_t call) {
    ASSERT_TRUE(pe.dispatch(routing, call)) << pe.error();
    ASSERT_EQ(pe.difference(routing, call), "") << "call " << call;
    pe.run_experts(routing, call);
    ASSERT_TRUE(pe.combine()) << pe.error();
    ASSERT_EQ(pe.output_difference(routing), "") << "call " << call;
}

// Runs `calls` layers in a row, each with its own tokens.
inline void expect_layers(const CaseShape& shape, const CombineConfig& config, int calls = 3, int blocks = 20) {
    Routing routing = random_routing(shape);
    if (config.rows_per == RowsPer::rank) use_inexact_weights(routing);
    LayerFixture bench(shape.ranks, config, blocks);
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open()) << pe.error();
        for (int call = 0; call < calls; ++call)
            ASSERT_NO_FATAL_FAILURE(expect_layer(pe, routing, static_cast<std::uint64_t>(call)));
    });
}

}  // namespace npushmem::moe
