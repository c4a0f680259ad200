// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf routing: generates a routing file from a seed, or converts one to another form, or describes its load.
// Runs without a launcher.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <optional>

#include "bench/moe/routing_binary.hpp"
#include "bench/moe/routing_file.hpp"
#include "bench/moe/routing_generator.hpp"
#include "bench/moe/routing_load.hpp"
#include "bench/perf/moe/workloads.hpp"
#include "bench/perf/subcommand.hpp"

namespace npushmem::perf {

namespace {

class RoutingCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app =
            program.add_subcommand("routing", "Generate a routing file; the same options give the same bytes");
        app->add_option("--model", model_, "Name to write; these names also set the sizes: " + workload_names());
        app->add_option("--experts", chosen_.experts, "Experts of the layer");
        app->add_option("--groups", chosen_.groups, "Equal groups of experts, for group-limited routing");
        app->add_option("--groups-per-token", chosen_.groups_per_token, "Groups that one token may use");
        app->add_option("--top-k", chosen_.top_k, "Choices per token");
        app->add_option("--ranks", chosen_.ranks, "PEs that own tokens")->default_val(8);
        app->add_option("--tokens", chosen_.tokens, "Tokens per PE");
        app->add_option("--zipf", chosen_.zipf, "Skew of the experts' popularity; 0 is uniform")->default_val(1.0);
        app->add_option("--drop", chosen_.dropped, "Share of choices replaced by -1")->default_val(0.0);
        app->add_option("--seed", chosen_.seed, "Seed")->default_val(1);
        const std::vector<CLI::Option*> generating = app->get_options();
        CLI::Option* from = app->add_option(
            "--from", from_,
            "Convert this file, of any form, instead of generating a routing; --ranks divides the tokens and "
            "--experts states the experts of an .npy file");
        for (CLI::Option* option : generating) {
            if (!option->check_lname("ranks") && !option->check_lname("experts")) from->excludes(option);
        }
        app->add_option("--layer", layer_, "Layer of an .npy file; default: 0, for --load all")
            ->needs(from)
            ->check(CLI::NonNegativeNumber);
        app->add_flag("--load", load_, "Print skew, rows per rank and rows per pair of ranks instead of the file");
        app->add_flag("--binary", binary_, "Write the binary form");
        app->add_option("--output,-o", output_, "File to write; default: standard output");
        return app_ = app;
    }

    int run() override {
        const auto made = text();
        if (!made.ok()) return fail("routing", made.status().message());
        const std::string& text = made.value();
        if (output_.empty()) return std::cout << text && std::cout.flush() ? EXIT_SUCCESS : EXIT_FAILURE;
        std::ofstream file(output_, std::ios::binary);
        file << text;
        file.close();
        return file ? EXIT_SUCCESS : fail("routing", fmt::format("cannot write '{}'", output_));
    }

private:
    [[nodiscard]] Result<std::string> text() const {
        if (load_ && !layer_ && !from_.empty()) return load_of_layers();
        const auto routing = read(layer_.value_or(0));
        if (!routing.ok()) return routing.status();
        return load_ ? moe::routing_load_text(routing.value()) : file_of(routing.value());
    }

    [[nodiscard]] Result<moe::Routing> read(std::int32_t layer) const {
        if (from_.empty()) return moe::generate_routing(options());
        const std::int32_t experts = app_->count("--experts") > 0 ? chosen_.experts : 0;
        return moe::read_routing_file(from_, {experts, chosen_.ranks, layer});
    }

    [[nodiscard]] Result<std::string> load_of_layers() const {
        const auto layers = moe::layers_of_routing_file(from_);
        if (!layers.ok()) return layers.status();
        std::string text;
        for (std::int32_t layer = 0; layer < layers.value(); ++layer) {
            const auto routing = read(layer);
            if (!routing.ok()) return routing.status();
            text += moe::routing_load_text(routing.value());
        }
        return text;
    }

    [[nodiscard]] std::string file_of(const moe::Routing& routing) const {
        if (binary_) return moe::routing_binary(routing);
        return from_.empty() ? moe::routing_text(routing, moe::generated_weight_unit) : moe::routing_text(routing);
    }

    // Uses the model's sizes for options that are not given.
    moe::GeneratorOptions options() const {
        moe::GeneratorOptions options = chosen_;
        options.model = model_;
        const Workload* workload = find_workload(model_);
        if (workload == nullptr) return options;
        const auto absent = [this](const char* name) { return app_->count(name) == 0; };
        if (absent("--experts")) options.experts = workload->experts;
        if (absent("--groups")) options.groups = workload->groups;
        if (absent("--groups-per-token")) options.groups_per_token = workload->groups_per_token;
        if (absent("--top-k")) options.top_k = workload->top_k;
        if (absent("--tokens")) options.tokens = workload->tokens;
        return options;
    }

    CLI::App* app_ = nullptr;
    moe::GeneratorOptions chosen_;
    std::string model_ = "deepseek-v3-decode";
    std::string from_;
    std::optional<std::int32_t> layer_;
    bool binary_ = false;
    bool load_ = false;
    std::string output_;
};

}  // namespace

std::unique_ptr<Subcommand> make_routing_command() { return std::make_unique<RoutingCommand>(); }

}  // namespace npushmem::perf
