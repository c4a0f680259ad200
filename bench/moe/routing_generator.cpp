// SPDX-License-Identifier: BSD-3-Clause
#include "bench/moe/routing_generator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "bench/moe/payload.hpp"

namespace npushmem::moe {

namespace {

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    // Uniform in [0, bound) but for a bias below 2^-30 for the bounds used here.
    std::uint64_t below(std::uint64_t bound) {
        state_ += 0x9E3779B97F4A7C15ULL;
        return mixed(state_) % bound;
    }

private:
    std::uint64_t state_;
};

using Weights = std::vector<std::uint64_t>;

// Draws an index with probability proportional to its weight, and sets that weight to 0.
std::size_t draw(Weights& weights, Random& random) {
    std::uint64_t at = random.below(std::accumulate(weights.begin(), weights.end(), std::uint64_t{0}));
    std::size_t index = 0;
    for (; at >= weights[index]; ++index) at -= weights[index];
    weights[index] = 0;
    return index;
}

// Rounded to whole numbers, so that the last bit of pow() has no effect.
Weights zipf_weights(const GeneratorOptions& options, Random& random) {
    Weights weights(static_cast<std::size_t>(options.experts));
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const double share = 0x1p20 / std::pow(static_cast<double>(i + 1), options.zipf);
        weights[i] = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(share)));
    }
    for (std::size_t i = weights.size(); i > 1; --i) std::swap(weights[i - 1], weights[random.below(i)]);
    return weights;
}

class TokenRouter {
public:
    TokenRouter(const GeneratorOptions& options, Random& random)
        : options_(options), random_(random), popularity_(zipf_weights(options, random)) {}

    void append_token(std::vector<std::int32_t>& ids, std::vector<float>& weights) {
        Weights allowed = experts_of_drawn_groups();
        for (std::int32_t k = 0; k < options_.top_k; ++k) {
            const auto expert = static_cast<std::int32_t>(draw(allowed, random_));
            ids.push_back(is_dropped() ? no_expert : expert);
        }
        append_weights(weights);
    }

private:
    [[nodiscard]] std::size_t group_size() const {
        return popularity_.size() / static_cast<std::size_t>(options_.groups);
    }

    Weights experts_of_drawn_groups() {
        Weights groups(static_cast<std::size_t>(options_.groups), 0);
        for (std::size_t e = 0; e < popularity_.size(); ++e) groups[e / group_size()] += popularity_[e];
        Weights allowed(popularity_.size(), 0);
        for (std::int32_t i = 0; i < options_.groups_per_token; ++i) {
            const std::size_t first = draw(groups, random_) * group_size();
            for (std::size_t e = first; e < first + group_size(); ++e) allowed[e] = popularity_[e];
        }
        return allowed;
    }

    bool is_dropped() {
        const auto limit = static_cast<std::uint64_t>(std::llround(options_.dropped * 0x1p20));
        return limit > 0 && random_.below(1U << 20) < limit;
    }

    // Descending like a router's scores; whole units whose sum is exactly 2.5.
    void append_weights(std::vector<float>& weights) {
        Weights raw(static_cast<std::size_t>(options_.top_k));
        for (std::uint64_t& weight : raw) weight = 64 + random_.below(4096);
        std::ranges::sort(raw, std::greater<>());
        const std::uint64_t sum = std::accumulate(raw.begin(), raw.end(), std::uint64_t{0});
        for (std::uint64_t& weight : raw) weight = weight * 10240 / sum;
        raw[0] += 10240 - std::accumulate(raw.begin(), raw.end(), std::uint64_t{0});
        for (const std::uint64_t weight : raw) weights.push_back(static_cast<float>(weight) * generated_weight_unit);
    }

    const GeneratorOptions& options_;
    Random& random_;
    Weights popularity_;
};

std::string origin_of(const GeneratorOptions& o) {
    return fmt::format(
        "generated, not recorded from a model: {} of {} expert groups per token, expert popularity Zipf {}, "
        "{} of choices dropped, seed {}; npushmem-perf routing --model {} --experts {} --groups {} "
        "--groups-per-token {} --top-k {} --ranks {} --tokens {} --zipf {} --drop {} --seed {}",
        o.groups_per_token, o.groups, o.zipf, o.dropped, o.seed, o.model, o.experts, o.groups, o.groups_per_token,
        o.top_k, o.ranks, o.tokens, o.zipf, o.dropped, o.seed);
}

Status refuse(const std::string& text) { return {Code::argument, "generate routing: " + text}; }

}  // namespace

Status check_generator_options(const GeneratorOptions& o) {
    if (o.experts < 1 || o.top_k < 1 || o.ranks < 1 || o.tokens < 0) {
        return refuse(fmt::format("experts {}, top_k {} and ranks {} must be at least 1 and tokens {} at least 0",
                                  o.experts, o.top_k, o.ranks, o.tokens));
    }
    if (o.groups < 1 || o.experts % o.groups != 0) {
        return refuse(fmt::format("{} experts do not form {} equal groups", o.experts, o.groups));
    }
    if (o.groups_per_token < 1 || o.groups_per_token > o.groups) {
        return refuse(fmt::format("a token cannot use {} of {} groups", o.groups_per_token, o.groups));
    }
    if (o.top_k > o.experts / o.groups * o.groups_per_token) {
        return refuse(fmt::format("top_k {} is more than the {} experts in {} of {} groups", o.top_k,
                                  o.experts / o.groups * o.groups_per_token, o.groups_per_token, o.groups));
    }
    if (!(o.zipf >= 0 && o.zipf <= 4) || !(o.dropped >= 0 && o.dropped <= 1)) {
        return refuse(fmt::format("zipf {} must be in [0, 4] and drop {} in [0, 1]", o.zipf, o.dropped));
    }
    return {};
}

Result<Routing> generate_routing(const GeneratorOptions& options) {
    if (Status status = check_generator_options(options); !status.ok()) return status;
    Random random(options.seed);
    TokenRouter router(options, random);
    Routing routing{options.model, origin_of(options), options.experts, options.top_k, {}, {}};
    for (std::int32_t rank = 0; rank < options.ranks; ++rank) {
        auto& ids = routing.expert_ids.emplace_back();
        auto& weights = routing.weights.emplace_back();
        for (std::int32_t token = 0; token < options.tokens; ++token) router.append_token(ids, weights);
    }
    return routing;
}

}  // namespace npushmem::moe
