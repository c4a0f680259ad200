// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/moe/workloads.hpp"

#include <algorithm>

namespace npushmem::perf {

const std::vector<Workload>& known_workloads() {
    static const std::vector<Workload> table{
        {"deepseek-v3-decode", 256, 8, 7168, 128, 64, 8, 4},
        {"deepseek-v3-prefill", 256, 8, 7168, 4096, 8, 8, 4},
        {"mixtral-8x7b-prefill", 8, 2, 4096, 4096, 8},
        {"qwen3-30b-prefill", 128, 8, 2048, 4096, 8},
        {"qwen3-30b-decode", 128, 8, 2048, 64, 8},
        {"gpt-oss-120b-decode", 128, 4, 2880, 64, 8},
        {"odd-rows", 64, 6, 1000, 333, 8},
        {"tiny-rows", 64, 6, 7, 333, 8},
    };
    return table;
}

const Workload* find_workload(std::string_view name) {
    const auto found = std::ranges::find(known_workloads(), name, &Workload::name);
    return found == known_workloads().end() ? nullptr : &*found;
}

moe::GeneratorOptions generator_of(const Workload& workload) {
    moe::GeneratorOptions options;
    options.model = workload.name;
    options.experts = workload.experts;
    options.groups = workload.groups;
    options.groups_per_token = workload.groups_per_token;
    options.top_k = workload.top_k;
    options.tokens = workload.tokens;
    return options;
}

std::string workload_names() {
    std::string names;
    for (const Workload& workload : known_workloads()) names += (names.empty() ? "" : ", ") + workload.name;
    return names;
}

}  // namespace npushmem::perf
