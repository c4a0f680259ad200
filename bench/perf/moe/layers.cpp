// SPDX-License-Identifier: BSD-3-Clause
// MoE layers: configuration, payload, and checks.
#include "bench/perf/moe/layers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>

#include "bench/moe/payload.hpp"
#include "bench/perf/job.hpp"
#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/element.hpp"
#include "npushmem.h"

namespace npushmem::perf {

// Calls visit with a value of the element type.
template <class Visit>
auto with_type(moe::ElementType type, const Visit& visit) {
    if (type == moe::ElementType::half) return visit(moe::Half{});
    if (type == moe::ElementType::float32) return visit(float{});
    return visit(moe::Bfloat16{});
}

template <class Element>
void fill_row(std::byte* row, std::uint64_t seed, std::int64_t columns) {
    auto* elements = reinterpret_cast<Element*>(row);
    for (std::int64_t c = 0; c < columns; ++c) {
        elements[c] = moe::from_float<Element>(moe::random_value(seed, static_cast<std::uint64_t>(c)));
    }
}

namespace {

std::int32_t mode_of(const std::string& name) {
    if (name == "chunked") return NPUSHMEMX_MOE_CHUNKED;
    return name == "stream" ? NPUSHMEMX_MOE_STREAM : NPUSHMEMX_MOE_DIRECT;
}

std::int32_t copy_of(const std::string& name) {
    if (name == "staged") return NPUSHMEMX_MOE_COPY_STAGED;
    if (name == "ordinary") return NPUSHMEMX_MOE_COPY_ORDINARY;
    return name == "streaming" ? NPUSHMEMX_MOE_COPY_STREAMING : NPUSHMEMX_MOE_COPY_AUTO;
}

}  // namespace

npushmemx_moe_config_t layer_config(const CombineCase& c, const CombineOptions& options) {
    npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
    config.experts = c.workload.experts;
    config.top_k = c.workload.top_k;
    config.hidden = c.workload.hidden;
    config.max_tokens = c.workload.tokens;
    config.input_type = static_cast<std::int32_t>(c.workload.type);
    config.output_type = config.input_type;
    config.mode = mode_of(options.mode);
    config.ring = options.ring == "sender" ? NPUSHMEMX_MOE_RING_AT_SENDER : NPUSHMEMX_MOE_RING_AT_RECEIVER;
    config.rows = options.rows == "rank" ? NPUSHMEMX_MOE_ROW_PER_RANK : NPUSHMEMX_MOE_ROW_PER_CHOICE;
    config.copy = copy_of(options.copy);
    config.audit = options.audit ? 1 : 0;
    return config;
}

namespace {

// The output element by the scalar reference: the same order of additions and the same rounding.
template <class Element, class Value>
float reference(const CombineCase& c, bool per_rank, std::span<const std::int32_t> experts,
                std::span<const float> weights, const Value& value) {
    if (!per_rank) return moe::reference_sum(experts, weights, value);
    const moe::ExpertPlacement placement(c.workload.experts, npushmem_n_pes());
    return moe::reference_tree(
        experts, weights, value, placement.ranks(), [&](std::int32_t expert) { return placement.rank_of(expert); },
        [](float sum) { return moe::to_float(moe::from_float<Element>(sum)); });
}

// Expected output of one token.
class Expected {
public:
    Expected(const CombineCase& c, bool per_rank, int pe, std::uint64_t salt, std::int64_t token)
        : case_(c),
          per_rank_(per_rank),
          experts_(std::span(c.expert_ids).subspan(first(c, token), static_cast<std::size_t>(c.workload.top_k))),
          weights_(std::span(c.weights).subspan(first(c, token), experts_.size())) {
        for (std::size_t k = 0; k < experts_.size(); ++k) {
            seeds_.push_back(moe::row_seed({salt, pe, static_cast<std::uint32_t>(first(c, token) + k), experts_[k]}));
        }
    }

    template <class Element>
    Element at(std::uint64_t column) const {
        return moe::from_float<Element>(reference<Element>(
            case_, per_rank_, experts_, weights_, [&](std::size_t k) { return moe::random_value(seeds_[k], column); }));
    }

private:
    static std::size_t first(const CombineCase& c, std::int64_t token) {
        return static_cast<std::size_t>(token * c.workload.top_k);
    }

    const CombineCase& case_;
    bool per_rank_;
    std::span<const std::int32_t> experts_;
    std::span<const float> weights_;
    std::vector<std::uint64_t> seeds_;
};

template <class Element>
std::optional<Difference> first_difference(const std::byte* row, const Expected& expected, std::int64_t columns) {
    const auto* seen = reinterpret_cast<const Element*>(row);
    for (std::int64_t c = 0; c < columns; ++c) {
        const auto want = expected.at<Element>(static_cast<std::uint64_t>(c));
        if (std::memcmp(&want, seen + c, sizeof want) == 0) continue;
        return Difference{0, c, moe::to_float(want), moe::to_float(seen[c])};
    }
    return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<CombineLayer>> CombineLayer::create(const CombineCase& c, const CombineOptions& options, int pe,
                                                           std::int32_t combine_type) {
    std::unique_ptr<CombineLayer> layer(new CombineLayer(c, pe));
    npushmemx_moe_config_t config = layer_config(c, options);
    config.combine_type = combine_type;
    if (Status status = layer->open(config); !status.ok()) return status;
    return layer;
}

CombineLayer::~CombineLayer() { npushmemx_moe_destroy(handle_); }

Status CombineLayer::open(const npushmemx_moe_config_t& config) {
    per_rank_ = config.rows == NPUSHMEMX_MOE_ROW_PER_RANK;
    if (npushmemx_moe_create(&config, &handle_) != 0) return library_failure();
    if (npushmemx_moe_set_routing(handle_, case_.own_tokens(), case_.expert_ids.data(), case_.weights.data()) != 0) {
        return failure();
    }
    if (npushmemx_moe_get_plan(handle_, &plan_) != 0) return failure();
    npushmemx_moe_received_t received{plan_.rows, nullptr, nullptr, nullptr};
    if (per_rank_ && npushmemx_moe_get_received(handle_, &received) != 0) return failure();
    sent_rows_ = received.rows;
    x_.resize(payload_bytes());
    out_.resize(static_cast<std::size_t>(case_.own_tokens() * case_.row_bytes()));
    return {};
}

Status CombineLayer::failure() const { return {Code::state, npushmemx_moe_error(handle_)}; }

std::size_t CombineLayer::payload_bytes() const { return static_cast<std::size_t>(plan_.rows * case_.row_bytes()); }

void CombineLayer::fill(std::uint64_t salt) {
    const auto row_bytes = static_cast<std::size_t>(case_.row_bytes());
    for (std::int32_t fragment = 0; fragment < plan_.local_experts * plan_.ranks; ++fragment) {
        const std::int32_t expert = plan_.first_expert + fragment / plan_.ranks;
        const std::int64_t first = plan_.offset_table[fragment];
        for (std::int64_t row = first; row < first + plan_.length_table[fragment]; ++row) {
            const std::uint64_t seed = moe::row_seed({salt, fragment % plan_.ranks, plan_.slots[row], expert});
            std::byte* target = x_.data() + static_cast<std::size_t>(row) * row_bytes;
            with_type(case_.workload.type,
                      [&](auto element) { fill_row<decltype(element)>(target, seed, case_.workload.hidden); });
        }
    }
    std::ranges::fill(out_, std::byte{0xA5});
}

Status CombineLayer::combine() {
    return npushmemx_moe_combine(handle_, x_.data(), out_.data()) == 0 ? Status{} : failure();
}

npushmemx_moe_traffic_t CombineLayer::traffic() const {
    npushmemx_moe_traffic_t traffic{};
    npushmemx_moe_get_traffic(handle_, &traffic);
    return traffic;
}

std::optional<Difference> CombineLayer::verify(std::uint64_t salt) const {
    for (std::int64_t token = 0; token < case_.own_tokens(); ++token) {
        const Expected expected(case_, per_rank_, pe_, salt, token);
        const std::byte* row = out_.data() + token * case_.row_bytes();
        auto difference = with_type(case_.workload.type, [&](auto element) {
            return first_difference<decltype(element)>(row, expected, case_.workload.hidden);
        });
        if (!difference) continue;
        difference->token = token;
        return difference;
    }
    return std::nullopt;
}

namespace {

std::uint64_t token_seed(std::uint64_t salt, int rank, std::int64_t token) {
    return moe::row_seed({salt, rank, static_cast<std::uint32_t>(token), 0});
}

// Number of rows of the hottest PE.
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

// The first element that differs from `value(column)`.
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
    const auto needed = capacity != 0 ? Result<std::int64_t>(capacity) : max_rows(job, c);
    if (!needed.ok()) return needed.status();
    layer->max_rows_ = needed.value();
    layer->capacity_ = options.slots == "fixed" ? NPUSHMEMX_MOE_FIXED_SLOTS : needed.value();
    if (Status status = layer->open(options); !status.ok()) return status;
    return layer;
}

RoundTripLayer::~RoundTripLayer() { npushmemx_moe_destroy(handle_); }

Status RoundTripLayer::open(const CombineOptions& options) {
    npushmemx_moe_config_t config = layer_config(case_, options);
    config.capacity = capacity_;
    may_stay_ = config.mode == NPUSHMEMX_MOE_DIRECT && config.copy == NPUSHMEMX_MOE_COPY_AUTO && config.audit == 0 &&
                moe::choose_in_place(moe::Bytes{static_cast<std::uint64_t>(case_.row_bytes())});
    per_rank_ = config.rows == NPUSHMEMX_MOE_ROW_PER_RANK;
    if (npushmemx_moe_create(&config, &handle_) != 0) return library_failure();
    if (per_rank_) {
        auto rows = make_symmetric<std::byte>(static_cast<std::size_t>(max_rows_ * case_.row_bytes()));
        if (!rows.ok()) return rows.status();
        y_ = std::move(rows).value();
    }
    fill(0);
    if (Status s = dispatch(); !s.ok()) return s;
    run_experts();
    return {};
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
                               per_rank_ ? nullptr : &x_) != 0) {
        return failure();
    }
    if (per_rank_ && npushmemx_moe_get_received(handle_, &received_) != 0) return failure();
    return npushmemx_moe_get_plan(handle_, &plan_) == 0 ? Status{} : failure();
}

std::int64_t RoundTripLayer::rows() const {
    return std::accumulate(plan_.length_table, plan_.length_table + plan_.local_experts * plan_.ranks, std::int64_t{0});
}

Status RoundTripLayer::dispatch_cached() {
    return npushmemx_moe_dispatch_cached(handle_, in_.data(), per_rank_ ? nullptr : &x_) == 0 ? Status{} : failure();
}

bool RoundTripLayer::stays_in_place() const {
    bool mapped = may_stay_;
    for (int pe = 0; pe < npushmem_n_pes(); ++pe) mapped = mapped && npushmem_ptr(x(), pe) != nullptr;
    return mapped;
}

// That have come, without gaps.
std::int64_t RoundTripLayer::sent_rows() const {
    if (!per_rank_) return rows();
    std::set<std::int32_t> used(received_.row_index, received_.row_index + plan_.rows);
    used.erase(-1);
    return static_cast<std::int64_t>(used.size());
}

void RoundTripLayer::run_experts() {
    if (!per_rank_) return;
    const auto row = static_cast<std::size_t>(case_.row_bytes());
    for (std::size_t at = 0; at < static_cast<std::size_t>(plan_.rows); ++at) {
        if (received_.row_index[at] < 0) continue;
        const std::byte* source = static_cast<const std::byte*>(received_.x);
        std::memcpy(y_.get() + at * row, source + static_cast<std::size_t>(received_.row_index[at]) * row, row);
    }
}

Status RoundTripLayer::combine() {
    return npushmemx_moe_combine(handle_, x(), out_.data()) == 0 ? Status{} : failure();
}

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
                    return reference<decltype(element)>(case_, per_rank_, experts, weights,
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
