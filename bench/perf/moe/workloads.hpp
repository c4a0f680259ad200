// SPDX-License-Identifier: BSD-3-Clause
// The named MoE layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/moe/routing_generator.hpp"
#include "core/moe/common/element.hpp"

namespace npushmem::perf {

struct Workload {
    std::string name;
    std::int32_t experts = 0;
    std::int32_t top_k = 0;
    std::int64_t hidden = 0;  // elements of a row
    std::int32_t tokens = 0;  // per PE
    std::int32_t ranks = 0;   // PEs of the deployment that the name stands for
    std::int32_t groups = 1;  // expert groups of the router, and groups per token
    std::int32_t groups_per_token = 1;
    moe::ElementType type = moe::ElementType::bfloat16;
};

const std::vector<Workload>& known_workloads();
// Returns null for an unknown name.
const Workload* find_workload(std::string_view name);
// Generator options for this workload; the caller adds ranks, skew and seed.
moe::GeneratorOptions generator_of(const Workload& workload);
// "a, b, c", for messages and help.
std::string workload_names();

}  // namespace npushmem::perf
