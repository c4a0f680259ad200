// SPDX-License-Identifier: BSD-3-Clause
// The rows that one PE, as the holder of experts, sends in a combine. `x` holds one row for every (token, choice) that
// chose one of its experts, expert-major and, inside an expert, ordered by the rank that owns the token:
//
//   x:  | expert 0: rank 0 rows, rank 1 rows, ... | expert 1: rank 0 rows, ... | ...
//
// offset_table[e][r] is the first row in x of the fragment (e, r), length_table[e][r] its number of rows; both int32
// and row-major [local_experts, ranks]. `slots` holds, for every row of x, its slot at the receiver: token * top_k + k.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/element.hpp"
#include "core/moe/common/routing.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

struct Fragment {
    Rows first;
    Rows count;
};

struct CombinePlan {
    std::int32_t local_experts = 0;
    std::int32_t ranks = 0;
    std::int32_t first_expert = 0;  // global number of local expert 0, for messages
    std::vector<std::int32_t> offset_table;
    std::vector<std::int32_t> length_table;
    std::vector<std::uint32_t> slots;  // one per row of x; rows that belong to no fragment hold no_slot
    Rows rows;                         // rows of x

    [[nodiscard]] std::size_t entry(std::int32_t expert, std::int32_t rank) const {
        return static_cast<std::size_t>(expert) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank);
    }
    [[nodiscard]] Fragment fragment(std::int32_t expert, std::int32_t rank) const {
        const std::size_t at = entry(expert, rank);
        return {Rows{static_cast<std::uint64_t>(offset_table[at])}, Rows{static_cast<std::uint64_t>(length_table[at])}};
    }
    // Number of rows for the rank, over all experts.
    [[nodiscard]] Rows rows_to(std::int32_t rank) const;
    // Number of rows of the expert, from all ranks.
    [[nodiscard]] Rows rows_of_expert(std::int32_t expert) const;
};

constexpr std::uint32_t no_slot = 0xFFFFFFFFU;

// The plan of rank `self` for the routing of all ranks, which must have passed check_routing. Inside a fragment rows
// are ordered by token, then by choice. The rows of each expert begin at a multiple of `alignment`. Fails when x would
// have more rows than an int32 table can point to.
Result<CombinePlan> build_combine_plan(std::span<const RankRouting> routing, const ExpertPlacement& placement,
                                       std::int32_t self, std::int32_t alignment = 1);

// The plan of rank `self` without rows.
CombinePlan empty_plan(const ExpertPlacement& placement, std::int32_t self);

// A choice of a token.
struct Choice {
    std::int32_t expert = no_expert;
    float weight = 0;
};

// The same plan, from the rows that `self` has received with one row per rank. `sent`: their plan, with slots token *
// width + j, inside a rank by token; `choices`: [sent.rows, top_k] of each row's token.
Result<CombinePlan> build_combine_plan(const CombinePlan& sent, std::int32_t width, std::span<const Choice> choices,
                                       std::int32_t top_k, const ExpertPlacement& placement, std::int32_t self,
                                       std::int32_t alignment = 1);

// Checks of tables that a caller supplies. They run before any byte moves, and each message names the expert, the rank
// and the value.

// Rejects tables that point outside x, negative entries, fragments that overlap, and more rows for a rank than
// `capacity`.
Status check_tables(const CombinePlan& plan, Rows capacity);

// Rejects slots outside the receiver's tokens, slots that occur twice, and slots of a choice that went to another
// expert; also a number of rows for a rank that differs from that rank's routing ("ranks that disagree").
Status check_slots(const CombinePlan& plan, std::span<const RankRouting> routing);

// Rejects another order of the rows inside a fragment than that of build_combine_plan. Modes stream and chunked need
// that order.
Status check_order(const CombinePlan& plan);

// Shares every rank's expert ids with every rank, and with one row per rank also the weights. The plan of a layer that
// gets only a routing is built from them. (A dispatch makes the plan without this exchange.)

class RoutingExchange {
public:
    // Symmetric bytes needed: a count, then room for the ids of max_tokens tokens, then for their weights if these are
    // shared.
    static Bytes size(const CombineConfig& config);

    // `config` must outlive the object.
    RoutingExchange(const CombineConfig& config, SymmetricMemory& memory, std::byte* block)
        : config_(config), memory_(memory), block_(block) {}

    // Not collective. Publishes this rank's routing; other ranks may collect it after the next barrier.
    void publish(const RankRouting& own);
    // Copies every rank's routing. Call it after a barrier.
    Status collect();
    // The routings that collect() copied. Their weights are empty if these stay with their rank.
    [[nodiscard]] std::span<const RankRouting> all() const { return views_; }

private:
    Status collect_from(int rank);
    [[nodiscard]] bool shares_weights() const { return config_.rows_per == RowsPer::rank; }
    [[nodiscard]] std::byte* weights() const;

    const CombineConfig& config_;
    SymmetricMemory& memory_;
    std::byte* block_;
    std::vector<std::vector<std::int32_t>> ids_;
    std::vector<std::vector<float>> weights_;
    std::vector<RankRouting> views_;
};

}  // namespace npushmem::moe
