#include "bench/perf/round_trip_layer.hpp"

#include <algorithm>
#include <cstring>

#include "bench/perf/layer_config.hpp"
#include "bench/perf/rows.hpp"
#include "core/moe/placement.hpp"
#include "core/moe/reference.hpp"

namespace npushmem::perf {
namespace {

std::uint64_t token_seed(std::uint64_t salt, int rank, std::int64_t token) {
    return moe::row_seed({salt, rank, static_cast<std::uint32_t>(token), 0});
}

// The rows that come to the hottest PE.
Result<std::int64_t> max_rows(const Job& job, const CombineCase& c) {
    const moe::ExpertPlacement placement(c.workload.experts, job.pes());
    std::vector<double> rows(static_cast<std::size_t>(job.pes()), 0);
    for (const std::int32_t id : c.expert_ids) {
        if (id >= 0) ++rows[static_cast<std::size_t>(placement.rank_of(id))];
    }
    const auto all = job.allgather(rows);
    if (!all.ok()) return all.status();
    std::vector<double> sums(rows.size(), 0);
    for (std::size_t i = 0; i < all.value().size(); ++i) sums[i % sums.size()] += all.value()[i];
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(*std::ranges::max_element(sums)));
}

// The first element that is not `value(column)`.
template <class Element, class Value>
std::optional<Difference> difference_in(const std::byte* row, std::int64_t columns, const Value& value) {
    for (std::int64_t c = 0; c < columns; ++c) {
        const auto want = moe::from_float<Element>(value(static_cast<std::uint64_t>(c)));
        Element seen;
        std::memcpy(&seen, row + static_cast<std::size_t>(c) * sizeof seen, sizeof seen);
        if (std::memcmp(&want, &seen, sizeof want) == 0) continue;
        return Difference{0, c, moe::to_float(want), moe::to_float(seen)};
    }
    return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<RoundTripLayer>> RoundTripLayer::create(const Job& job, const CombineCase& c,
                                                               const CombineOptions& options, std::int64_t capacity) {
    std::unique_ptr<RoundTripLayer> layer(new RoundTripLayer(c, job.pe()));
    const auto needed = capacity > 0 ? Result<std::int64_t>(capacity) : max_rows(job, c);
    if (!needed.ok()) return needed.status();
    layer->capacity_ = needed.value();
    if (Status status = layer->open(options); !status.ok()) return status;
    return layer;
}

RoundTripLayer::~RoundTripLayer() { npushmemx_moe_destroy(handle_); }

Status RoundTripLayer::open(const CombineOptions& options) {
    npushmemx_moe_config_t config = layer_config(case_, options);
    config.capacity = capacity_;
    if (npushmemx_moe_create(&config, &handle_) != 0) return library_failure();
    fill(0);
    return dispatch();
}

Status RoundTripLayer::failure() const { return {Code::state, npushmemx_moe_error(handle_)}; }

void RoundTripLayer::fill(std::uint64_t salt) {
    in_.resize(static_cast<std::size_t>(case_.own_tokens() * case_.row_bytes()));
    out_.resize(in_.size());
    for (std::int64_t token = 0; token < case_.own_tokens(); ++token) {
        const std::uint64_t seed = token_seed(salt, pe_, token);
        std::byte* row = in_.data() + token * case_.row_bytes();
        with_type(case_.workload.type,
                  [&](auto element) { fill_row<decltype(element)>(row, seed, case_.workload.hidden); });
    }
    std::ranges::fill(out_, std::byte{0xA5});
}

Status RoundTripLayer::dispatch() {
    if (npushmemx_moe_dispatch(handle_, case_.own_tokens(), in_.data(), case_.expert_ids.data(), case_.weights.data(),
                               &x_) != 0) {
        return failure();
    }
    return npushmemx_moe_get_plan(handle_, &plan_) == 0 ? Status{} : failure();
}

Status RoundTripLayer::combine() { return npushmemx_moe_combine(handle_, x_, out_.data()) == 0 ? Status{} : failure(); }

std::optional<Difference> RoundTripLayer::verify_rows(std::uint64_t salt) const {
    for (std::int32_t fragment = 0; fragment < plan_.local_experts * plan_.ranks; ++fragment) {
        auto difference =
            verify_fragment(fragment % plan_.ranks, plan_.offset_table[fragment], plan_.length_table[fragment], salt);
        if (difference) return difference;
    }
    return std::nullopt;
}

std::optional<Difference> RoundTripLayer::verify_fragment(int rank, std::int64_t first, std::int64_t count,
                                                          std::uint64_t salt) const {
    for (std::int64_t at = first; at < first + count; ++at) {
        const std::uint64_t seed = token_seed(salt, rank, plan_.slots[at] / case_.workload.top_k);
        auto difference = with_type(case_.workload.type, [&](auto element) {
            return difference_in<decltype(element)>(x() + at * case_.row_bytes(), case_.workload.hidden,
                                                    [&](std::uint64_t c) { return moe::random_value(seed, c); });
        });
        if (!difference) continue;
        difference->token = at;
        return difference;
    }
    return std::nullopt;
}

std::optional<Difference> RoundTripLayer::verify_output(std::uint64_t salt) const {
    const auto top_k = static_cast<std::size_t>(case_.workload.top_k);
    for (std::int64_t token = 0; token < case_.own_tokens(); ++token) {
        const std::size_t first = static_cast<std::size_t>(token) * top_k;
        const auto experts = std::span(case_.expert_ids).subspan(first, top_k);
        const auto weights = std::span(case_.weights).subspan(first, top_k);
        const std::uint64_t seed = token_seed(salt, pe_, token);
        auto difference = with_type(case_.workload.type, [&](auto element) {
            return difference_in<decltype(element)>(
                out_.data() + token * case_.row_bytes(), case_.workload.hidden, [&](std::uint64_t c) {
                    return moe::reference_sum(experts, weights,
                                              [&](std::size_t) { return moe::random_value(seed, c); });
                });
        });
        if (!difference) continue;
        difference->token = token;
        return difference;
    }
    return std::nullopt;
}

}  // namespace npushmem::perf
