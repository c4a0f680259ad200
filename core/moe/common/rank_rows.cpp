// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/rank_rows.hpp"

#include <algorithm>
#include <utility>

namespace npushmem::moe {
namespace {

std::int32_t width_of(std::int32_t top_k, std::int32_t ranks) { return std::min(top_k, ranks); }

}  // namespace

void TokenRanks::insert(std::int32_t rank) {
    std::int32_t* const end = ranks_.data() + count_;
    std::int32_t* const at = std::lower_bound(ranks_.data(), end, rank);
    if (at != end && *at == rank) return;
    std::copy_backward(at, end, end + 1);
    *at = rank;
    ++count_;
}

RoutingToRanks route_to_ranks(const RankRouting& routing, std::int32_t top_k, const ExpertPlacement& placement) {
    const auto width = static_cast<std::size_t>(width_of(top_k, placement.ranks()));
    RoutingToRanks to;
    to.ranks.assign(routing.tokens(top_k) * width, no_expert);
    to.ones.assign(to.ranks.size(), 1.0F);
    for (std::size_t token = 0; token < routing.tokens(top_k); ++token) {
        TokenRanks ranks;
        for (const std::int32_t id :
             routing.experts.subspan(token * static_cast<std::size_t>(top_k), static_cast<std::size_t>(top_k))) {
            if (id >= 0) ranks.insert(placement.rank_of(id));
        }
        std::ranges::copy(ranks.all(), to.ranks.data() + token * width);
    }
    return to;
}

std::vector<std::uint32_t> slots_by_rank(const RoutingToRanks& routing, std::int32_t ranks) {
    std::vector<std::size_t> next(static_cast<std::size_t>(ranks) + 1, 0);
    for (const std::int32_t rank : routing.ranks) {
        if (rank >= 0) ++next[static_cast<std::size_t>(rank) + 1];
    }
    for (std::size_t rank = 1; rank < next.size(); ++rank) next[rank] += next[rank - 1];
    std::vector<std::uint32_t> slots(next.back());
    for (std::size_t slot = 0; slot < routing.ranks.size(); ++slot) {
        if (routing.ranks[slot] < 0) continue;
        slots[next[static_cast<std::size_t>(routing.ranks[slot])]++] = static_cast<std::uint32_t>(slot);
    }
    return slots;
}

void append_choices(std::vector<Choice>& choices, std::span<const std::uint32_t> slots, std::int32_t width,
                    const RankRouting& routing, std::int32_t top_k) {
    for (const std::uint32_t slot : slots) {
        const std::size_t first =
            std::size_t{slot / static_cast<std::uint32_t>(width)} * static_cast<std::size_t>(top_k);
        for (std::size_t at = first; at < first + static_cast<std::size_t>(top_k); ++at) {
            choices.push_back({routing.experts[at], routing.weights[at]});
        }
    }
}

Result<ReceivedRows> received_rows(std::span<const RankRouting> routing, std::int32_t top_k,
                                   const ExpertPlacement& placement, std::int32_t self) {
    const std::int32_t ranks = placement.ranks();
    std::vector<RoutingToRanks> to;
    std::vector<RankRouting> views;
    for (const RankRouting& of_rank : routing) to.push_back(route_to_ranks(of_rank, top_k, placement));
    for (const RoutingToRanks& of_rank : to) views.push_back(of_rank.view());
    auto plan = build_combine_plan(views, ExpertPlacement(ranks, ranks), self);
    if (!plan.ok()) return plan.status();
    ReceivedRows rows{std::move(plan).value(), {}, std::move(to[static_cast<std::size_t>(self)])};
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        const Fragment fragment = rows.plan.fragment(0, rank);
        append_choices(rows.choices, std::span(rows.plan.slots).subspan(fragment.first.value(), fragment.count.value()),
                       width_of(top_k, ranks), routing[static_cast<std::size_t>(rank)], top_k);
    }
    return rows;
}

namespace {

// Calls visit(at, row, choice) for every row `at` of the experts whose token belongs to the rank, with its received
// row.
template <class Visit>
void for_each_part(const ReceivedRows& received, const CombinePlan& plan, std::int32_t top_k, std::int32_t rank,
                   const Visit& visit) {
    const auto width = static_cast<std::uint32_t>(width_of(top_k, plan.ranks));
    const auto k = static_cast<std::uint32_t>(top_k);
    const Fragment sent = received.plan.fragment(0, rank);
    if (sent.count == Rows{0}) return;
    const std::uint64_t end = (sent.first + sent.count).value();
    std::vector<std::uint64_t> row_of(received.plan.slots[end - 1] / width + 1);  // by token; tokens ascend
    for (std::uint64_t row = sent.first.value(); row < end; ++row) row_of[received.plan.slots[row] / width] = row;
    for (std::int32_t expert = 0; expert < plan.local_experts; ++expert) {
        const Fragment part = plan.fragment(expert, rank);
        for (std::uint64_t at = part.first.value(); at < (part.first + part.count).value(); ++at) {
            visit(at, row_of[plan.slots[at] / k], plan.slots[at] % k);
        }
    }
}

}  // namespace

RankRows relate_rows(const ReceivedRows& received, const CombinePlan& plan, std::int32_t top_k) {
    RankRows rows;
    rows.source.assign(plan.rows.value(), -1);
    rows.weights.assign(plan.rows.value(), 0.0F);
    std::vector<std::uint32_t> part_of(received.choices.size(), no_slot);  // row of the experts, by choice
    for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
        for_each_part(received, plan, top_k, rank, [&](std::uint64_t at, std::uint64_t row, std::uint32_t choice) {
            const std::uint64_t of_choice = row * static_cast<std::uint64_t>(top_k) + choice;
            part_of[of_choice] = static_cast<std::uint32_t>(at);
            rows.source[at] = static_cast<std::int32_t>(row);
            rows.weights[at] = received.choices[of_choice].weight;
        });
    }
    rows.first.push_back(0);
    for (std::size_t choice = 0; choice < part_of.size(); ++choice) {
        if (part_of[choice] != no_slot) rows.parts.push_back(part_of[choice]);
        if ((choice + 1) % static_cast<std::size_t>(top_k) == 0) rows.first.push_back(rows.parts.size());
    }
    return rows;
}

}  // namespace npushmem::moe
