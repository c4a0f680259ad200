// Routing files: JSON, described field by field in bench/perf/README.md. Reading refuses anything malformed with the
// place (line and column, or rank, token and choice) and what would be right.
#pragma once

#include <string>
#include <string_view>

#include "core/moe/routing.hpp"

namespace npushmem::moe {

// `name` is the file's name, for messages.
Result<Routing> parse_routing(std::string_view text, std::string_view name);

Result<Routing> read_routing_file(const std::string& path);

// The file's text for a routing. Weights are written as whole multiples of `weight_unit`, so that text and value agree
// bit for bit; the routing's weights must be such multiples. The same routing gives the same bytes everywhere.
std::string routing_text(const Routing& routing, float weight_unit);

}  // namespace npushmem::moe
