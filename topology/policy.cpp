#include "topology/policy.hpp"

#include <fmt/format.h>

#include <array>

namespace npushmem::topology {
namespace {

constexpr std::array<std::string_view, 5> names{"balanced", "nearest", "exclusive", "round_robin", "list"};

}  // namespace

std::string_view name_of(Policy policy) { return names.at(static_cast<std::size_t>(policy)); }

Result<Policy> parse_policy(std::string_view text) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (text == names[i]) return static_cast<Policy>(i);
    }
    return Status{Code::config, fmt::format("\"{}\" is no NIC policy; choose balanced, nearest, exclusive, round_robin "
                                            "or list",
                                            text)};
}

}  // namespace npushmem::topology
