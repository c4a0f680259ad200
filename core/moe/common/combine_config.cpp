// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/combine_config.hpp"

#include <fmt/format.h>

#include <limits>

namespace npushmem::moe {
namespace {

Status refuse(const char* field, std::int64_t value, std::int64_t least, std::int64_t most) {
    return {Code::argument, fmt::format("moe: {} is {}, must be from {} to {}", field, value, least, most)};
}

Status check_type(const char* field, ElementType type) {
    if (is_valid(type)) return {};
    return {Code::argument, fmt::format("moe: {} is {}, must be 1 (bf16), 2 (half) or 3 (float)", field,
                                        static_cast<std::int32_t>(type))};
}

Status check_type(const char* field, NarrowType type) {
    if (is_valid(type)) return {};
    return {Code::argument, fmt::format("moe: {} is {}, must be 0 (the input type), 4 (e4m3), 5 (e5m2) or 6 (int8)",
                                        field, static_cast<std::int32_t>(type))};
}

}  // namespace

Status CombineConfig::validate() const {
    constexpr std::int64_t max_experts = 1 << 20;
    constexpr std::int64_t max_hidden = 1 << 24;
    constexpr std::int64_t max_token_count = 1 << 24;
    constexpr std::int64_t max_alignment = 1 << 20;
    constexpr std::int64_t max_rows = 0x7FFFFFFF;  // of x: its tables have 32 bits
    if (experts < 1 || experts > max_experts) return refuse("experts", experts, 1, max_experts);
    if (top_k < 1 || top_k > max_top_k) return refuse("top_k", top_k, 1, max_top_k);
    if (hidden < 1 || hidden > max_hidden) return refuse("hidden", hidden, 1, max_hidden);
    if (max_tokens < 1 || max_tokens > max_token_count) return refuse("max_tokens", max_tokens, 1, max_token_count);
    if (Status status = check_type("input type", input); !status.ok()) return status;
    if (Status status = check_type("output type", output); !status.ok()) return status;
    if (Status status = check_type("dispatch_type", dispatch_type); !status.ok()) return status;
    if (Status status = check_type("combine_type", combine_type); !status.ok()) return status;
    if (narrow_input && dispatch_type == NarrowType::none)
        return {
            Code::argument,
            "moe: dispatch_input is 1 (quantized), but dispatch_type is 0 (the input type); give 4 (e4m3), 5 (e5m2) or "
            "6 (int8)"};
    constexpr std::int64_t max_block = std::numeric_limits<std::int32_t>::max();
    if (scale_block < 0 || scale_block > max_block) return refuse("scale_block", scale_block, 0, max_block);
    if (rows_per != RowsPer::choice && rows_per != RowsPer::rank)
        return refuse("rows", static_cast<std::int64_t>(rows_per), 0, 1);
    // A received row stands for up to top_k rows of the experts.
    const std::int64_t max_capacity = rows_per == RowsPer::rank ? max_rows / top_k : max_rows;
    if (capacity != fixed_slots && (capacity < 0 || capacity > max_capacity))
        return refuse("capacity", capacity, 0, max_capacity);
    if (expert_alignment < 1 || expert_alignment > max_alignment)
        return refuse("expert_alignment", expert_alignment, 1, max_alignment);
    if (ring_rows < 0 || ring_rows > max_token_count) return refuse("ring_rows", ring_rows, 0, max_token_count);
    if (chunk_tokens < 1 || chunk_tokens > max_token_count)
        return refuse("chunk_tokens", chunk_tokens, 1, max_token_count);
    if (ring_place != RingPlace::receiver && ring_place != RingPlace::sender) {
        return refuse("the ring's place", static_cast<std::int64_t>(ring_place), 0, 1);
    }
    if (name_of(mode) != "unknown") return {};
    return {Code::unsupported, fmt::format("moe: mode {} is not supported; use 0 (direct), 1 (chunked) or 2 (stream)",
                                           static_cast<std::int32_t>(mode))};
}

CombineConfig CombineConfig::transport(std::int32_t ranks) const {
    CombineConfig config = *this;
    if (rows_per == RowsPer::choice) return config;
    config.rows_per = RowsPer::choice;
    config.experts = ranks;
    config.top_k = std::min(top_k, ranks);
    config.expert_alignment = 1;
    return config;
}

Status check_own_routing(const CombineConfig& config, const RankRouting& own, std::int32_t rank) {
    if (own.experts.size() > config.slots().value()) {
        return {Code::range, fmt::format("routing of rank {}: {} tokens, above the max_tokens {} given at creation",
                                         rank, own.tokens(config.top_k), config.max_tokens)};
    }
    return check_routing(own, config.experts, config.top_k, rank);
}

}  // namespace npushmem::moe
