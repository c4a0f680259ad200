// What the user asked of `npushmem-perf combine` or `dispatch`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace npushmem::perf {

struct CombineOptions {
    std::string model = "deepseek-v3-decode";
    std::string routing_file;  // empty: generate
    std::optional<std::int32_t> experts;
    std::optional<std::int32_t> top_k;
    std::optional<std::int32_t> tokens;
    std::optional<std::int64_t> hidden;
    std::string type = "bf16";
    std::string copy = "auto";
    std::string mode = "direct";
    std::string ring = "receiver";
    double zipf = 1.0;
    std::uint64_t seed = 1;
    int iterations = 30;
    int warmup = 5;
    bool verify = true;
    bool audit = false;
    std::string csv;
    std::string svg;
};

// Adds the options to the subcommand; their values go to `options`, which must outlive it.
void declare_options(CLI::App& app, CombineOptions& options);

}  // namespace npushmem::perf
