#include "core/moe/routing_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/streams.hpp"
#include "core/moe/routing_binary.hpp"
#include "core/moe/routing_document.hpp"

namespace npushmem::moe {
namespace {

template <class Value, class Write>
std::string token_lines(const std::vector<Value>& values, std::size_t top_k, const Write& write) {
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool last = i + 1 == values.size();
        text += write(values[i]);
        text += last ? "" : (i % top_k == top_k - 1 ? ",\n   " : ",");
    }
    return text;
}

template <class Value, class Write>
std::string rank_arrays(const std::vector<std::vector<Value>>& ranks, std::size_t top_k, const Write& write) {
    std::string text;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        text += fmt::format("  [{}]{}\n", token_lines(ranks[rank], top_k, write), rank + 1 < ranks.size() ? "," : "");
    }
    return text;
}

std::string quoted(const std::string& text) {
    // What is no UTF-8 cannot stand in the file.
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// "-0" would be read as an integer, without its sign.
std::string number_text(float value) { return value == 0 && std::signbit(value) ? "-0.0" : fmt::format("{}", value); }

std::string token_counts(const Routing& routing) {
    std::string text;
    for (const auto& ids : routing.expert_ids) {
        text += fmt::format("{}{}", text.empty() ? "" : ",", ids.size() / static_cast<std::size_t>(routing.top_k));
    }
    return text;
}

template <class Weight>
std::string text_of(const Routing& routing, float weight_unit, const Weight& weight) {
    const auto top_k = static_cast<std::size_t>(routing.top_k);
    const auto id = [](std::int32_t value) { return fmt::format("{}", value); };
    return fmt::format(
        "{{\n \"format\": \"npushmem-routing\",\n \"version\": 1,\n \"model\": {},\n \"origin\": {},\n"
        " \"experts\": {},\n \"top_k\": {},\n \"ranks\": {},\n \"tokens_per_rank\": [{}],\n \"weight_unit\": {},\n"
        " \"expert_ids\": [\n{} ],\n \"weights\": [\n{} ]\n}}\n",
        quoted(routing.model), quoted(routing.origin), routing.experts, routing.top_k, routing.ranks(),
        token_counts(routing), weight_unit, rank_arrays(routing.expert_ids, top_k, id),
        rank_arrays(routing.weights, top_k, weight));
}

}  // namespace

Result<Routing> parse_routing(std::string_view text, std::string_view name) {
    if (is_routing_binary(text)) return parse_routing_binary(text, name);
    return RoutingDocument(text, name).routing();
}

Result<Routing> read_routing_file(const std::string& path) {
    const auto text = read_whole_file(path);
    if (text.ok()) return parse_routing(text.value(), path);
    return Status{Code::argument,
                  fmt::format("cannot open routing file '{}': {}; give the path of a file in the format of "
                              "bench/perf/README.md, or make one with 'npushmem-perf routing'",
                              path, text.status().message())};
}

std::string routing_text(const Routing& routing, float weight_unit) {
    return text_of(routing, weight_unit,
                   [&](float value) { return fmt::format("{}", std::lround(value / weight_unit)); });
}

std::string routing_text(const Routing& routing) { return text_of(routing, 1.0F, number_text); }

}  // namespace npushmem::moe
