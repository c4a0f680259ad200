// SPDX-License-Identifier: BSD-3-Clause
#include "bench/moe/routing_load.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "core/moe/common/combine_config.hpp"

namespace npushmem::moe {

namespace {

double skew(const std::vector<std::int64_t>& rows) {
    const double sum = static_cast<double>(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}));
    return sum == 0 ? 1.0 : static_cast<double>(std::ranges::max(rows)) * static_cast<double>(rows.size()) / sum;
}

std::string matrix_text(const std::vector<std::int64_t>& rows, std::size_t ranks) {
    std::string text;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const std::span<const std::int64_t> line(rows.data() + rank * ranks, ranks);
        text += fmt::format("    from rank {}: {}\n", rank, fmt::join(line, " "));
    }
    return text;
}

}  // namespace

RoutingLoad routing_load(const Routing& routing) {
    const auto ranks = static_cast<std::size_t>(routing.ranks());
    const auto top_k = static_cast<std::size_t>(routing.top_k);
    const ExpertPlacement placement(routing.experts, routing.ranks());
    RoutingLoad load;
    load.expert_rows.resize(static_cast<std::size_t>(routing.experts));
    load.rank_rows.resize(ranks);
    load.pair_rows.resize(ranks * ranks);
    load.pair_token_rows.resize(ranks * ranks);
    std::vector<std::int64_t> last_token(ranks, -1);  // that has sent a row to the rank
    std::int64_t token = 0;
    for (std::size_t from = 0; from < ranks; ++from) {
        const auto& ids = routing.expert_ids[from];
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (i % top_k == 0) ++token;
            if (ids[i] == no_expert) {
                ++load.dropped;
                continue;
            }
            const auto to = static_cast<std::size_t>(placement.rank_of(ids[i]));
            ++load.expert_rows[static_cast<std::size_t>(ids[i])];
            ++load.rank_rows[to];
            ++load.pair_rows[from * ranks + to];
            if (last_token[to] != token) ++load.pair_token_rows[from * ranks + to];
            last_token[to] = token;
        }
    }
    return load;
}

std::string routing_load_text(const Routing& routing) {
    const RoutingLoad load = routing_load(routing);
    const auto ranks = static_cast<std::size_t>(routing.ranks());
    const auto busiest = std::ranges::max_element(load.expert_rows) - load.expert_rows.begin();
    return fmt::format(
               "{} ({}): {} experts, top_k {}, {} ranks, {} choices dropped\n"
               "  expert skew {:.3f}: expert {} has {} rows; {} experts have none\n"
               "  rank skew {:.3f}, rows per rank: {}\n  rows per pair of ranks:\n",
               routing.model, routing.origin, routing.experts, routing.top_k, ranks, load.dropped,
               skew(load.expert_rows), busiest, load.expert_rows[static_cast<std::size_t>(busiest)],
               std::ranges::count(load.expert_rows, 0), skew(load.rank_rows), fmt::join(load.rank_rows, " ")) +
           matrix_text(load.pair_rows, ranks) + "  rows per pair, one for each token and rank:\n" +
           matrix_text(load.pair_token_rows, ranks);
}

}  // namespace npushmem::moe
