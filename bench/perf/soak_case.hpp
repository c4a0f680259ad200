// Layers of random shapes and random routings, from a seed: the same shape on every PE, and each PE's own routing.
#pragma once

#include <cstdint>
#include <random>

#include "bench/perf/combine_case.hpp"

namespace npushmem::perf {

struct SoakShape {
    CombineCase layer;  // without a routing yet
    CombineOptions options;
    std::int64_t capacity = 0;  // what no routing can exceed
    double absent = 0;          // share of choices that are none
    int crowded = 0;            // percent of the choices that go to expert 0
};

SoakShape soak_shape(std::uint64_t seed, std::uint64_t layer, int pes);

// Another routing of PE `pe`, with another number of tokens, none included.
void reroute(SoakShape& shape, std::mt19937_64& random);

}  // namespace npushmem::perf
