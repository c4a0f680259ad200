// SPDX-License-Identifier: BSD-3-Clause
// Generates routings from a seed, for machines on which no model runs. It computes with integers only, so the same
// options give the same routing on every machine, bit for bit.
#pragma once

#include <cstdint>
#include <string>

#include "core/moe/common/routing.hpp"

namespace npushmem::moe {

struct GeneratorOptions {
    std::string model = "custom";
    std::int32_t experts = 64;
    std::int32_t groups = 1;            // experts are split into equal groups ...
    std::int32_t groups_per_token = 1;  // ... and a token draws its experts from this many of them
    std::int32_t top_k = 2;
    std::int32_t ranks = 8;
    std::int32_t tokens = 128;  // per rank
    double zipf = 0.0;          // popularity of the i-th most popular expert ~ 1 / (i + 1)^zipf; 0 is uniform
    double dropped = 0.0;       // fraction of choices replaced by -1, in [0, 1]
    std::uint64_t seed = 1;
};

// Weights are whole multiples of this; those of a token add up to 2.5, the scale that DeepSeek-V3 uses.
constexpr float generated_weight_unit = 1.0F / 4096;

// Rejects options that contradict each other, for example more choices than experts in the groups; the message names
// them.
Status check_generator_options(const GeneratorOptions& options);

Result<Routing> generate_routing(const GeneratorOptions& options);

}  // namespace npushmem::moe
