// One subcommand of npushmem-perf: a file of its own, and one line in subcommands.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

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

}  // namespace npushmem::perf
