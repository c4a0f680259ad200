// Routing files: JSON or binary (routing_binary.hpp), described field by field in bench/perf/README.md. Reading refuses
// anything malformed with the place (line and column, or rank, token and choice) and what would be right.
#pragma once

#include <string>
#include <string_view>

#include "core/moe/routing.hpp"

namespace npushmem::moe {

// Either form, by its first bytes. `name` is the file's name, for messages.
Result<Routing> parse_routing(std::string_view text, std::string_view name);

Result<Routing> read_routing_file(const std::string& path);

// The file's text for a routing. Weights are written as whole multiples of `weight_unit`, so that text and value agree
// bit for bit; the routing's weights must be such multiples. The same routing gives the same bytes everywhere.
std::string routing_text(const Routing& routing, float weight_unit);
// The same for any weights: each as the shortest decimal that is read as this float.
std::string routing_text(const Routing& routing);

}  // namespace npushmem::moe
