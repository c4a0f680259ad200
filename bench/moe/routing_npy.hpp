// SPDX-License-Identifier: BSD-3-Clause
// Routing as serving engines export it: an array `routed_experts` [tokens, layers, top_k] of integers in numpy's .npy
// format, versions 1 to 3, in C order. bench/perf/README.md describes what is accepted.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/moe/common/routing.hpp"

namespace npushmem::moe {

// What such a file does not contain.
struct NpySelection {
    std::int32_t experts = 0;  // of a layer; 0: the largest number in the file + 1
    std::int32_t ranks = 1;    // they own contiguous, nearly equal blocks of the tokens, the first ones larger
    std::int32_t layer = 0;
};

// Whether `bytes` begin like an .npy file.
bool is_npy(std::string_view bytes);

// The number of layers. `name` is the file's name, for messages. Rejects what parse_routing_npy rejects in a header.
Result<std::int32_t> npy_layers(std::string_view bytes, std::string_view name);

// One layer. The file has no weights: each is 1 / top_k. Rejects truncated and overlong files, headers other than those
// above, and numbers outside [-1, experts); the message names field, or token, layer and choice, and value.
Result<Routing> parse_routing_npy(std::string_view bytes, std::string_view name, const NpySelection& selection);

}  // namespace npushmem::moe
