// The steps from a routing file's text to a Routing: syntax, header, one array per rank. Private to routing_file.cpp
// and its test.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/moe/routing.hpp"

namespace npushmem::moe {

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

}  // namespace npushmem::moe
