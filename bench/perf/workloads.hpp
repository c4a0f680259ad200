// The MoE layers that are measured by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/moe/element.hpp"
#include "core/moe/routing_generator.hpp"

namespace npushmem::perf {

struct Workload {
    std::string name;
    std::int32_t experts = 0;
    std::int32_t top_k = 0;
    std::int64_t hidden = 0;  // elements of a row
    std::int32_t tokens = 0;  // per PE
    std::int32_t ranks = 0;   // PEs of the deployment that the name stands for
    std::int32_t groups = 1;  // expert groups of the router, and how many of them a token may use
    std::int32_t groups_per_token = 1;
    moe::ElementType type = moe::ElementType::bfloat16;
};

const std::vector<Workload>& known_workloads();
// Null when there is none of that name.
const Workload* find_workload(std::string_view name);
// For routing of this workload; ranks, skew and seed are the caller's to add.
moe::GeneratorOptions generator_of(const Workload& workload);
// "a, b, c", for messages and help.
std::string workload_names();

}  // namespace npushmem::perf
