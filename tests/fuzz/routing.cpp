// SPDX-License-Identifier: BSD-3-Clause
// Routing files in all forms.
#include <cstring>

#include "bench/moe/routing_binary.hpp"
#include "bench/moe/routing_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {
namespace {

// Compares weights bit by bit.
void require_equal(const moe::Routing& a, const moe::Routing& b, const char* form) {
    const auto same_bits = [](const std::vector<float>& x, const std::vector<float>& y) {
        return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
    };
    const bool same = a.experts == b.experts && a.top_k == b.top_k && a.expert_ids == b.expert_ids &&
                      std::ranges::equal(a.weights, b.weights, same_bits);
    require(same, std::string("a routing changes by writing and reading it as ") + form);
}

}  // namespace

void routing(Input input) {
    const auto parsed = moe::parse_routing(text_of(input), "input");
    if (!parsed.ok()) return require_message(parsed.status());
    const moe::Routing& routing = parsed.value();
    for (std::size_t rank = 0; rank < routing.expert_ids.size(); ++rank)
        require(moe::check_routing(routing.rank(rank), routing.experts, routing.top_k, static_cast<std::int32_t>(rank))
                    .ok(),
                "a routing that the runtime rejects is accepted");
    const auto text = moe::parse_routing(moe::routing_text(routing), "text");
    require(text.ok(), "the text of a routing is rejected: " + text.status().message());
    require_equal(routing, text.value(), "text");
    const auto binary = moe::parse_routing(moe::routing_binary(routing), "binary");
    require(binary.ok(), "the binary form of a routing is rejected: " + binary.status().message());
    require_equal(routing, binary.value(), "bytes");
}

}  // namespace npushmem::fuzz
