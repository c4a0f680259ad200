// SPDX-License-Identifier: BSD-3-Clause
#include "bench/moe/routing_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/moe/routing_binary.hpp"
#include "core/base/streams.hpp"
#include "core/moe/common/routing.hpp"

namespace npushmem::moe {
namespace {

// Turns a routing file's text into a Routing, in steps: syntax, header, one array per rank.
class RoutingDocument {
public:
    RoutingDocument(std::string_view text, std::string_view name) : text_(text), name_(name) {}

    Result<Routing> routing();

private:
    using Json = nlohmann::json;

    Status parse();
    Status read_header(Routing& routing);
    Status read_format();
    Status read_token_counts(std::int32_t ranks);
    Status read_ranks(Routing& routing);
    Status read_rank(Routing& routing, std::size_t rank);
    Status read_ids(Routing& routing, std::size_t rank, const Json& array);
    Status read_weights(Routing& routing, std::size_t rank, const Json& array);

    // A whole number of at least `least` under the key.
    Result<std::int32_t> number(const char* key, std::int32_t least);
    // The array of one rank under "expert_ids" or "weights", with the right length.
    Result<const Json*> rank_array(const char* key, std::size_t rank, std::size_t length);

    [[nodiscard]] Status refuse(std::string_view place, std::string_view problem) const;
    [[nodiscard]] std::string choice(const char* key, std::size_t rank, std::size_t index) const;

    std::string_view text_;
    std::string name_;
    Json json_;
    std::int32_t top_k_ = 0;
    float weight_unit_ = 1.0F;
    std::vector<std::size_t> tokens_;  // per rank
};

std::string line_and_column(std::string_view text, std::size_t byte) {
    const std::string_view before = text.substr(0, byte > 0 ? std::min(byte - 1, text.size()) : 0);
    const auto line = 1 + std::ranges::count(before, '\n');
    const std::size_t start = before.rfind('\n');
    return fmt::format("line {}, column {}", line,
                       before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1);
}

// The value as a 64-bit whole number within [least, most]; nothing for everything else, huge numbers included.
std::optional<std::int64_t> whole(const nlohmann::json& value, std::int64_t least, std::int64_t most) {
    if (!value.is_number_integer()) return std::nullopt;
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most))
        return std::nullopt;
    const auto number = value.get<std::int64_t>();
    return number >= least && number <= most ? std::optional(number) : std::nullopt;
}

// Arrays and objects are not written out: they may be nested deeper than the stack allows.
std::string shown(const nlohmann::json& value) {
    if (value.is_structured()) return fmt::format("an {}", value.type_name());
    const std::string text = value.dump();
    return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

Status RoutingDocument::refuse(std::string_view place, std::string_view problem) const {
    return {Code::argument, fmt::format("routing file '{}', {}: {}", name_, place, problem)};
}

std::string RoutingDocument::choice(const char* key, std::size_t rank, std::size_t index) const {
    const auto k = static_cast<std::size_t>(top_k_);
    return fmt::format("\"{}\", rank {}, token {}, choice {}", key, rank, index / k, index % k);
}

Result<Routing> RoutingDocument::routing() {
    Routing routing;
    if (Status status = parse(); !status.ok()) return status;
    if (Status status = read_header(routing); !status.ok()) return status;
    if (Status status = read_ranks(routing); !status.ok()) return status;
    return routing;
}

Status RoutingDocument::parse() {
    try {
        json_ = Json::parse(text_);
    } catch (const Json::parse_error& error) {
        return refuse(line_and_column(text_, error.byte),
                      "not valid JSON here; was the file cut off or edited by hand?");
    } catch (const Json::exception& error) {
        return refuse("somewhere", error.what());
    }
    return json_.is_object() ? Status{} : refuse("line 1", "the file must hold one JSON object, { ... }");
}

Status RoutingDocument::read_format() {
    const auto format = json_.find("format");
    if (format == json_.end() || *format != "npushmem-routing") {
        return refuse("\"format\"", "must be \"npushmem-routing\"; is this another kind of file?");
    }
    const auto version = number("version", 1);
    if (!version.ok()) return version.status();
    if (version.value() == 1) return {};
    return refuse("\"version\"", fmt::format("is {}, this program reads version 1", version.value()));
}

Result<std::int32_t> RoutingDocument::number(const char* key, std::int32_t least) {
    const auto found = json_.find(key);
    const auto place = fmt::format("\"{}\"", key);
    if (found == json_.end()) return refuse(place, "is missing");
    if (const auto value = whole(*found, least, largest_number)) return static_cast<std::int32_t>(*value);
    return refuse(place, fmt::format("is {}, must be a whole number from {}", shown(*found), least));
}

Status RoutingDocument::read_header(Routing& routing) {
    if (Status status = read_format(); !status.ok()) return status;
    const auto experts = number("experts", 1);
    if (!experts.ok()) return experts.status();
    const auto top_k = number("top_k", 1);
    if (!top_k.ok()) return top_k.status();
    const auto ranks = number("ranks", 1);
    if (!ranks.ok()) return ranks.status();
    routing.experts = experts.value();
    routing.top_k = top_k_ = top_k.value();
    if (top_k_ > max_file_top_k) {
        return refuse("\"top_k\"", fmt::format("is {}, at most {} is accepted", top_k_, max_file_top_k));
    }
    const auto text = [&](const char* key) {
        const auto found = json_.find(key);
        return found != json_.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    routing.model = text("model");
    routing.origin = text("origin");
    return read_token_counts(ranks.value());
}

Status RoutingDocument::read_token_counts(std::int32_t ranks) {
    const auto unit = json_.find("weight_unit");
    if (unit != json_.end() && !unit->is_number()) return refuse("\"weight_unit\"", "must be a number");
    if (unit != json_.end()) weight_unit_ = unit->get<float>();
    const auto counts = json_.find("tokens_per_rank");
    if (counts == json_.end() || !counts->is_array() || counts->size() != static_cast<std::size_t>(ranks)) {
        return refuse("\"tokens_per_rank\"", fmt::format("must be an array of {} numbers, one per rank", ranks));
    }
    for (std::size_t rank = 0; rank < counts->size(); ++rank) {
        const auto count = whole((*counts)[rank], 0, max_file_tokens);
        if (!count) {
            return refuse(
                fmt::format("\"tokens_per_rank\", rank {}", rank),
                fmt::format("is {}, must be a whole number from 0 to {}", shown((*counts)[rank]), max_file_tokens));
        }
        tokens_.push_back(static_cast<std::size_t>(*count));
    }
    return {};
}

Status RoutingDocument::read_ranks(Routing& routing) {
    for (std::size_t rank = 0; rank < tokens_.size(); ++rank) {
        if (Status status = read_rank(routing, rank); !status.ok()) return status;
    }
    return {};
}

Status RoutingDocument::read_rank(Routing& routing, std::size_t rank) {
    const std::size_t length = tokens_[rank] * static_cast<std::size_t>(top_k_);
    const auto ids = rank_array("expert_ids", rank, length);
    if (!ids.ok()) return ids.status();
    const auto weights = rank_array("weights", rank, length);
    if (!weights.ok()) return weights.status();
    if (Status status = read_ids(routing, rank, *ids.value()); !status.ok()) return status;
    return read_weights(routing, rank, *weights.value());
}

Result<const RoutingDocument::Json*> RoutingDocument::rank_array(const char* key, std::size_t rank,
                                                                 std::size_t length) {
    const auto all = json_.find(key);
    if (all == json_.end() || !all->is_array() || all->size() != tokens_.size()) {
        return refuse(fmt::format("\"{}\"", key),
                      fmt::format("must be an array of {} arrays, one per rank", tokens_.size()));
    }
    const Json& array = (*all)[rank];
    if (array.is_array() && array.size() == length) return &array;
    return refuse(fmt::format("\"{}\", rank {}", key, rank),
                  fmt::format("has {} entries, must have {} ({} tokens of top_k {})", array.size(), length,
                              tokens_[rank], top_k_));
}

Status RoutingDocument::read_ids(Routing& routing, std::size_t rank, const Json& array) {
    std::vector<std::int32_t>& ids = routing.expert_ids.emplace_back();
    ids.reserve(array.size());
    for (std::size_t i = 0; i < array.size(); ++i) {
        const auto id = whole(array[i], no_expert, routing.experts - 1);
        if (!id) {
            return refuse(choice("expert_ids", rank, i),
                          fmt::format("is {}, must be an expert from 0 to {}, or -1 for none", shown(array[i]),
                                      routing.experts - 1));
        }
        ids.push_back(static_cast<std::int32_t>(*id));
    }
    return {};
}

Status RoutingDocument::read_weights(Routing& routing, std::size_t rank, const Json& array) {
    std::vector<float>& weights = routing.weights.emplace_back();
    weights.reserve(array.size());
    for (std::size_t i = 0; i < array.size(); ++i) {
        const float weight = array[i].is_number() ? array[i].get<float>() * weight_unit_ : std::nanf("");
        if (!std::isfinite(weight)) {
            return refuse(choice("weights", rank, i), fmt::format("is {}, must be a finite number", shown(array[i])));
        }
        weights.push_back(weight);
    }
    return {};
}

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
    // Bytes that are not UTF-8 cannot be written to the file.
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

namespace {

Result<std::string> text_of_file(const std::string& path) {
    auto text = read_whole_file(path);
    if (text.ok()) return text;
    return Status{Code::argument,
                  fmt::format("cannot open routing file '{}': {}; give the path of a file in the format of "
                              "bench/perf/README.md, or make one with 'npushmem-perf routing'",
                              path, text.status().message())};
}

}  // namespace

Result<Routing> parse_routing(std::string_view text, std::string_view name, const NpySelection& selection) {
    if (is_npy(text)) return parse_routing_npy(text, name, selection);
    if (is_routing_binary(text)) return parse_routing_binary(text, name);
    return RoutingDocument(text, name).routing();
}

Result<Routing> read_routing_file(const std::string& path, const NpySelection& selection) {
    const auto text = text_of_file(path);
    return text.ok() ? parse_routing(text.value(), path, selection) : text.status();
}

Result<std::int32_t> layers_of_routing_file(const std::string& path) {
    const auto text = text_of_file(path);
    if (!text.ok()) return text.status();
    return is_npy(text.value()) ? npy_layers(text.value(), path) : Result<std::int32_t>(1);
}

std::string routing_text(const Routing& routing, float weight_unit) {
    return text_of(routing, weight_unit,
                   [&](float value) { return fmt::format("{}", std::lround(value / weight_unit)); });
}

std::string routing_text(const Routing& routing) { return text_of(routing, 1.0F, number_text); }

std::int32_t max_tokens_per_rank(const Routing& routing) {
    std::size_t max_ids = 0;
    for (const auto& ids : routing.expert_ids) max_ids = std::max(max_ids, ids.size());
    return static_cast<std::int32_t>(max_ids / static_cast<std::size_t>(routing.top_k));
}

}  // namespace npushmem::moe
