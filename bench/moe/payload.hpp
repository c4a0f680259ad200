// SPDX-License-Identifier: BSD-3-Clause
// Deterministic payload: every element is a function of (salt, source token's rank, token, k, expert, column), so any
// swapped, lost, repeated or stale row is detected, and the rank that owns a token can compute all its rows itself.
#pragma once

#include <cstdint>
#include <span>

namespace npushmem::moe {

struct RowKey {
    std::uint64_t salt = 0;  // changes from launch to launch: a stale row has another value
    std::int32_t rank = 0;   // the rank that owns the token
    std::uint32_t slot = 0;  // token * top_k + k
    std::int32_t expert = 0;
};

constexpr std::uint64_t mixed(std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9ULL;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

// The seed of a row; the elements follow from it and the column.
constexpr std::uint64_t row_seed(const RowKey& key) {
    std::uint64_t seed = mixed(key.salt + 0x9E3779B97F4A7C15ULL);
    seed = mixed(seed ^ static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.rank)));
    seed = mixed(seed ^ (static_cast<std::uint64_t>(key.slot) << 32 | static_cast<std::uint32_t>(key.expert)));
    return seed;
}

// 32 well mixed bits per column; cheap enough to be evaluated for every element of a layer.
constexpr std::uint32_t column_bits(std::uint64_t seed, std::uint64_t column) {
    auto x = static_cast<std::uint32_t>(seed) + static_cast<std::uint32_t>(column) * 0x9E3779B9U;
    x ^= static_cast<std::uint32_t>(seed >> 32);
    x ^= x >> 16;
    x *= 0x7FEB352DU;
    x ^= x >> 15;
    x *= 0x846CA68BU;
    return x ^ (x >> 16);
}

// An integer in [-8, 8]: with weights that are small powers of two every partial sum is exact.
constexpr float exact_value(std::uint64_t seed, std::uint64_t column) {
    return static_cast<float>(static_cast<std::int32_t>(column_bits(seed, column) % 17U) - 8);
}

// A multiple of 2^-7 in [-1, 1), exact in every element type, whose weighted sums do round.
constexpr float random_value(std::uint64_t seed, std::uint64_t column) {
    return static_cast<float>(static_cast<std::int32_t>(column_bits(seed, column) >> 24) - 128) * 0x1p-7F;
}

// The scalar reference for every faster path: the weighted sum of one token's rows.

// Float accumulation from 0 in ascending order of k; an expert id of -1 contributes nothing, whatever its weight.
// `value(k)` is the token's k-th row at the column, as float.
template <class Value>
float reference_sum(std::span<const std::int32_t> experts, std::span<const float> weights, const Value& value) {
    float sum = 0.0F;
    for (std::size_t k = 0; k < experts.size(); ++k) {
        if (experts[k] < 0) continue;
        const float product = weights[k] * value(k);
        sum += product;
    }
    return sum;
}

// The same with one row per rank: the choices of each rank of `ranks`, ascending, are added up and rounded to the type
// of the rows; then the sums of the ranks that have any are added up. `rank_of(expert)`; `rounded(float)`.
template <class Value, class RankOf, class Rounded>
float reference_tree(std::span<const std::int32_t> experts, std::span<const float> weights, const Value& value,
                     std::int32_t ranks, const RankOf& rank_of, const Rounded& rounded) {
    float sum = 0.0F;
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        float of_rank = 0.0F;
        bool any = false;
        for (std::size_t k = 0; k < experts.size(); ++k) {
            if (experts[k] < 0 || rank_of(experts[k]) != rank) continue;
            const float product = weights[k] * value(k);
            of_rank += product;
            any = true;
        }
        if (any) sum += rounded(of_rank);
    }
    return sum;
}

struct DoubleSum {
    double sum = 0;
    double magnitude = 0;  // sum of |w * x|, for the error bound
};

// The same in double precision.
template <class Value>
DoubleSum reference_double(std::span<const std::int32_t> experts, std::span<const float> weights, const Value& value) {
    DoubleSum result;
    for (std::size_t k = 0; k < experts.size(); ++k) {
        if (experts[k] < 0) continue;
        const double product = static_cast<double>(weights[k]) * static_cast<double>(value(k));
        result.sum += product;
        result.magnitude += product < 0 ? -product : product;
    }
    return result;
}

}  // namespace npushmem::moe
