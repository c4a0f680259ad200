// SPDX-License-Identifier: BSD-3-Clause
// One row per (token, rank). The rows travel like those of a layer whose experts are the ranks, with `width` =
// min(top_k, ranks) choices per token: a dispatch brings a token's row once to each rank that holds any of its experts,
// and a combine returns one row from each. Around that, locally:
//
//   dispatch   each received row stands for one row of each of its token's experts here
//   combine    the row that returns is the weighted sum of the experts' rows of its token here
//
// So a token's output is a tree: its leaves are the experts' rows, its inner nodes the ranks.
//
//   rank_row[r] = sum over the choices k of rank r, ascending:  weight[k] * row(k)     from 0, in float, rounded once
//   out         = sum over the ranks r, ascending:              rank_row[r]            from 0, in float, rounded once
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/routing.hpp"

namespace npushmem::moe {

// The ranks of a token's experts, each once and ascending.
class TokenRanks {
public:
    void insert(std::int32_t rank);
    [[nodiscard]] std::span<const std::int32_t> all() const { return {ranks_.data(), count_}; }

private:
    std::array<std::int32_t, max_top_k> ranks_;
    std::size_t count_ = 0;
};

// The routing of a rank's tokens to ranks, [tokens, width]: the ranks of a token's experts, each once and ascending,
// then -1. All weights are 1.
struct RoutingToRanks {
    std::vector<std::int32_t> ranks;
    std::vector<float> ones;

    [[nodiscard]] RankRouting view() const { return {ranks, ones}; }
};

RoutingToRanks route_to_ranks(const RankRouting& routing, std::int32_t top_k, const ExpertPlacement& placement);

// The slots of the rows that a rank sends, by rank, inside that by token: the order in which a dispatch puts them.
std::vector<std::uint32_t> slots_by_rank(const RoutingToRanks& routing, std::int32_t ranks);

// Appends the choices of the tokens of `slots`, [slots, top_k].
void append_choices(std::vector<Choice>& choices, std::span<const std::uint32_t> slots, std::int32_t width,
                    const RankRouting& routing, std::int32_t top_k);

// Rows that a rank has received from a dispatch, and the plan of the combine that returns one row for each.
struct ReceivedRows {
    CombinePlan plan;
    std::vector<Choice> choices;  // one row per rank: [plan.rows, top_k] of each row's token; else empty
    RoutingToRanks own;           // one row per rank: of this rank's tokens; else empty
};

// The rows that this rank would receive from a dispatch of all ranks with this routing, which has weights.
Result<ReceivedRows> received_rows(std::span<const RankRouting> routing, std::int32_t top_k,
                                   const ExpertPlacement& placement, std::int32_t self);

// Relates the received rows to the experts' rows.
struct RankRows {
    std::vector<std::int32_t> source;  // [experts' rows] its received row; -1: a row outside of all fragments
    std::vector<float> weights;        // [experts' rows]
    std::vector<std::uint64_t> first;  // [received rows + 1] where in `parts` those of each received row begin
    std::vector<std::uint32_t> parts;  // experts' rows, by received row, inside that by choice
};

// `plan`: of the experts' rows, for the same routing; its slots are token * top_k + k.
RankRows relate_rows(const ReceivedRows& received, const CombinePlan& plan, std::int32_t top_k);

}  // namespace npushmem::moe
