#include "core/base/standard_variables.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "core/base/strings.hpp"

namespace npushmem {

namespace {

constexpr double max_bytes = 9.0e18;  // 64 bits, less what rounding to pages may add

// 0 where the suffix is no scaling factor. Beyond the standard, as in NPUSHMEM_SYMMETRIC_SIZE: "kb" and "kib" are "k".
double factor_of(std::string_view suffix) {
    const std::string_view after_letter = suffix.substr(1);
    if (!after_letter.empty() && after_letter != "b" && after_letter != "ib") return 0;
    switch (suffix.front()) {
        case 'k': return 0x1p10;
        case 'm': return 0x1p20;
        case 'g': return 0x1p30;
        case 't': return 0x1p40;
        default: return 0;
    }
}

// A decimal number, whole or not, and one suffix. The heap gets at least the ceiling of the product, and at least one
// byte, which is rounded up to what can be mapped.
Result<std::string> translate_size(std::string_view text) {
    const std::string word = lowercase(trimmed(text));
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, std::chars_format::fixed);
    const auto suffix = std::string_view(word).substr(static_cast<std::size_t>(end - word.data()));
    const double factor = suffix.empty() ? 1 : factor_of(suffix);
    const Status refused{Code::config, fmt::format("'{}' is no number of bytes", text)};
    if (error != std::errc{} || factor == 0 || !(number >= 0)) return refused;
    if (number * factor > max_bytes) return Status{Code::config, fmt::format("'{}' does not fit into 64 bits", text)};
    return fmt::format("{}", std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(number * factor))));
}

template <const char* const& Value>
Result<std::string> always(std::string_view /*text*/) {
    return std::string(Value);
}

constexpr const char* on = "1";
constexpr const char* debug = "debug";

constexpr StandardVariable variables[] = {
    {"VERSION", {"SHMEM_VERSION", "SMA_VERSION"}, "print the version at start", "any value", always<on>},
    {"INFO", {"SHMEM_INFO", "SMA_INFO"}, "print this, and what was chosen and why", "any value", always<on>},
    {"SYMMETRIC_SIZE",
     {"SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE"},
     "bytes of each PE's symmetric heap",
     "a decimal number, whole or not, with an optional k, m, g or t (powers of 1024), such as 512M or .5g",
     translate_size},
    {"DEBUG", {"SHMEM_DEBUG", "SMA_DEBUG"}, "print messages for debugging", "any value", always<debug>},
};

}  // namespace

std::span<const StandardVariable> standard_variables() { return variables; }

std::optional<StandardValue> standard_value(const Environment& environment, std::string_view row) {
    for (const auto& variable : variables) {
        if (row != variable.row) continue;
        for (const char* name : variable.names)
            if (auto text = environment.get(name)) return StandardValue{&variable, name, std::move(*text)};
    }
    return std::nullopt;
}

std::string describe_standard_variables() {
    std::string text =
        "variables of OpenSHMEM (deprecated: SMA_ instead of SHMEM_); NPUSHMEM_ instead of SHMEM_ counts first:\n";
    for (const auto& variable : variables)
        text += fmt::format("  {:<22}{}; {}\n", variable.names[0], variable.meaning, variable.accepted);
    return text + "npushmem-info -c lists all variables, with values and origins\n";
}

}  // namespace npushmem
