#include "bench/perf/combine_layer.hpp"

#include <algorithm>
#include <cstring>

#include "bench/perf/job.hpp"
#include "bench/perf/layer_config.hpp"
#include "bench/perf/rows.hpp"
#include "core/moe/payload.hpp"
#include "core/moe/reference.hpp"

namespace npushmem::perf {
namespace {

// What one token's output must be.
class Expected {
public:
    Expected(const CombineCase& c, int pe, std::uint64_t salt, std::int64_t token)
        : experts_(std::span(c.expert_ids).subspan(first(c, token), static_cast<std::size_t>(c.workload.top_k))),
          weights_(std::span(c.weights).subspan(first(c, token), experts_.size())) {
        for (std::size_t k = 0; k < experts_.size(); ++k) {
            seeds_.push_back(moe::row_seed({salt, pe, static_cast<std::uint32_t>(first(c, token) + k), experts_[k]}));
        }
    }

    template <class Element>
    Element at(std::uint64_t column) const {
        return moe::from_float<Element>(moe::reference_sum(
            experts_, weights_, [&](std::size_t k) { return moe::random_value(seeds_[k], column); }));
    }

private:
    static std::size_t first(const CombineCase& c, std::int64_t token) {
        return static_cast<std::size_t>(token * c.workload.top_k);
    }

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

Result<std::unique_ptr<CombineLayer>> CombineLayer::create(const CombineCase& c, const CombineOptions& options,
                                                           int pe) {
    std::unique_ptr<CombineLayer> layer(new CombineLayer(c, pe));
    if (Status status = layer->open(options); !status.ok()) return status;
    return layer;
}

CombineLayer::~CombineLayer() { npushmemx_moe_destroy(handle_); }

Status CombineLayer::open(const CombineOptions& options) {
    const npushmemx_moe_config_t config = layer_config(case_, options);
    if (npushmemx_moe_create(&config, &handle_) != 0) return library_failure();
    if (npushmemx_moe_set_routing(handle_, case_.own_tokens(), case_.expert_ids.data(), case_.weights.data()) != 0) {
        return failure();
    }
    if (npushmemx_moe_get_plan(handle_, &plan_) != 0) return failure();
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
        const Expected expected(case_, pe_, salt, token);
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

}  // namespace npushmem::perf
