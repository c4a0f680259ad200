// SPDX-License-Identifier: BSD-3-Clause
// A subcommand of npushmem-perf: one file, and one line in main.cpp.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/parse.hpp"

namespace npushmem::perf {

class Subcommand {
public:
    Subcommand() = default;
    Subcommand(const Subcommand&) = delete;
    Subcommand& operator=(const Subcommand&) = delete;
    virtual ~Subcommand() = default;

    // Adds the subcommand with its options to the program; the options' values live in this object.
    virtual CLI::App* declare(CLI::App& program) = 0;
    // Does the work; returns the process's exit status.
    virtual int run() = 0;
};

// All of them, in the order of the help text.
std::vector<std::unique_ptr<Subcommand>> all_subcommands();

// Reports why a subcommand ends, on standard error; returns the exit status.
inline int fail(std::string_view subcommand, std::string_view why) {
    std::cerr << "npushmem-perf " << subcommand << ": " << why << '\n';
    return EXIT_FAILURE;
}

// Accepts whole numbers of at least 1.

inline CLI::Validator positive() {
    return {[](const std::string& text) {
                const bool good = parse_integer(text, 1, std::numeric_limits<std::int64_t>::max()).ok();
                return good ? std::string() : fmt::format("'{}' is not a whole number of at least 1", text);
            },
            "POSITIVE"};
}

}  // namespace npushmem::perf
