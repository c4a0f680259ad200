// The binary form of a routing file, for routings too long for text; described field by field in bench/perf/README.md.
#pragma once

#include <string>
#include <string_view>

#include "core/moe/routing.hpp"

namespace npushmem::moe {

// Whether they begin like such a file.
bool is_routing_binary(std::string_view bytes);

// `name` is the file's name, for messages. Refuses what is cut off, too long, or out of range, naming field, rank,
// token and choice with their values.
Result<Routing> parse_routing_binary(std::string_view bytes, std::string_view name);

// The file's bytes: the same on every machine.
std::string routing_binary(const Routing& routing);

}  // namespace npushmem::moe
