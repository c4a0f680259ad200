// The check of options that count something.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <string>

#include "core/base/parse.hpp"

namespace npushmem::perf {

inline CLI::Validator positive() {
    return {[](const std::string& text) {
                const bool good = parse_integer(text, 1, std::numeric_limits<std::int64_t>::max()).ok();
                return good ? std::string() : fmt::format("'{}' is not a whole number of at least 1", text);
            },
            "POSITIVE"};
}

}  // namespace npushmem::perf
