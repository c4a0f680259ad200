// SPDX-License-Identifier: BSD-3-Clause
//  Routing files in JSON or binary form (routing_binary.hpp), or as .npy (routing_npy.hpp); bench/perf/README.md
//  describes the fields. The readers reject malformed files; the message gives the place (line and column, or rank,
//  token and choice) and the expected value.
#pragma once

#include <string>
#include <string_view>

#include "bench/moe/routing_npy.hpp"
#include "core/moe/common/routing.hpp"

namespace npushmem::moe {

// Parses any form; the first bytes decide. `name` is the file's name, for messages. `selection` counts for .npy files
// only.
Result<Routing> parse_routing(std::string_view text, std::string_view name, const NpySelection& selection = {});

Result<Routing> read_routing_file(const std::string& path, const NpySelection& selection = {});

// The layers in the file: 1 in JSON and binary form, whose contents this does not check.
Result<std::int32_t> layers_of_routing_file(const std::string& path);

// The file's text for a routing. Weights are written as whole multiples of `weight_unit`, so that text and value agree
// bit for bit; the routing's weights must be such multiples. The same routing gives the same bytes everywhere.
std::string routing_text(const Routing& routing, float weight_unit);
// The same for any weights: writes each as the shortest decimal that reads back as the same float.
std::string routing_text(const Routing& routing);

// The number of tokens of the rank that has most.
std::int32_t max_tokens_per_rank(const Routing& routing);

}  // namespace npushmem::moe
