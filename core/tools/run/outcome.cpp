#include "core/tools/run/outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/base/parse.hpp"

namespace npushmem::run {

std::string text_of(const Outcome& outcome) { return fmt::format("{} {}", outcome.status, outcome.exit); }

std::optional<Outcome> parse_outcome(std::string_view text) {
    using Limits = std::numeric_limits<std::int32_t>;
    const auto blank = std::min(text.find(' '), text.size());
    const auto status = parse_integer(text.substr(0, blank), Limits::min(), Limits::max());
    if (!status.ok()) return std::nullopt;
    return Outcome{static_cast<int>(status.value()), std::string(text.substr(std::min(blank + 1, text.size())))};
}

}  // namespace npushmem::run
