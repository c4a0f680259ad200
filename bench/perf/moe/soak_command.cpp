// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf soak: runs dispatch and combine of MoE layers with random shapes and routings, and compares every byte
// of the results with a reference. A seed determines the shapes and the routings. All PEs use the same shape; each PE
// has its own routing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <random>

#include "bench/engine/progress_line.hpp"
#include "bench/moe/payload.hpp"
#include "bench/perf/job.hpp"
#include "bench/perf/moe/combine_case.hpp"
#include "bench/perf/moe/layers.hpp"
#include "bench/perf/moe/report_text.hpp"
#include "bench/perf/subcommand.hpp"
#include "npushmem.h"

namespace npushmem::perf {

struct SoakShape {
    CombineCase layer;  // its routing is empty until reroute()
    CombineOptions options;
    std::int64_t capacity = 0;  // maximum number of rows of a PE, over all routings of this shape
    double absent = 0;          // probability, 0 to 1, that a choice has no expert (-1)
    int crowded = 0;            // percentage of the choices with an expert that is forced to expert 0; 0: none
};

SoakShape soak_shape(std::uint64_t seed, std::uint64_t layer, int pes);

// Replaces this PE's routing with a random one. The number of tokens is random, too, and may be 0.
void reroute(SoakShape& shape, std::mt19937_64& random);

namespace {

// Returns a random integer from `least` to `most`. A seed must give the same values everywhere, but the distributions
// of the standard library differ between implementations.
std::int64_t up_to(std::mt19937_64& random, std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

template <class Value, std::size_t count>
Value one_of(std::mt19937_64& random, const std::array<Value, count>& values) {
    return values[random() % count];
}

std::int64_t random_hidden(std::mt19937_64& random) {
    static constexpr std::array<std::int64_t, 10> usual{1, 7, 16, 17, 128, 1000, 2048, 2880, 4096, 7168};
    return random() % 8 == 0 ? one_of(random, usual) : up_to(random, 1, 96);
}

}  // namespace

SoakShape soak_shape(std::uint64_t seed, std::uint64_t layer, int pes) {
    static constexpr std::array<moe::ElementType, 3> types{moe::ElementType::bfloat16, moe::ElementType::half,
                                                           moe::ElementType::float32};
    static const std::array<std::string, 3> modes{"direct", "chunked", "stream"};
    static const std::array<std::string, 4> copies{"auto", "staged", "ordinary", "streaming"};
    std::mt19937_64 random(seed * 1'000'003 + layer);
    SoakShape shape;
    Workload& w = shape.layer.workload;
    w.name = "soak";
    w.experts = static_cast<std::int32_t>(up_to(random, 1, 4 * pes));
    w.top_k = static_cast<std::int32_t>(up_to(random, 1, 6));
    w.hidden = random_hidden(random);
    // Some layers with short rows get 300 tokens, which exceeds one chunk of mode chunked (256 tokens).
    w.tokens = static_cast<std::int32_t>(w.hidden < 100 && random() % 16 == 0 ? 300 : up_to(random, 1, 12));
    w.type = one_of(random, types);
    shape.options.mode = one_of(random, modes);
    shape.options.ring = random() % 2 == 0 ? "sender" : "receiver";
    shape.options.copy = one_of(random, copies);
    shape.options.audit = random() % 2 == 0;
    shape.capacity = static_cast<std::int64_t>(w.tokens) * w.top_k * pes;
    shape.absent = static_cast<double>(random() % 3) / 4;
    shape.crowded = random() % 4 == 0 ? 90 : 0;
    shape.options.rows = random() % 2 == 0 ? "rank" : "choice";
    return shape;
}

void reroute(SoakShape& shape, std::mt19937_64& random) {
    CombineCase& c = shape.layer;
    const std::int64_t tokens = random() % 6 == 0 ? 0 : up_to(random, 1, c.workload.tokens);
    c.expert_ids.clear();
    c.weights.clear();
    for (std::int64_t i = 0; i < tokens * c.workload.top_k; ++i) {
        const bool none = static_cast<double>(random() % 1000) < 1000 * shape.absent;
        const bool first = random() % 100 < static_cast<std::uint64_t>(shape.crowded);
        const auto any = static_cast<std::int32_t>(up_to(random, 0, c.workload.experts - 1));
        c.expert_ids.push_back(none ? -1 : first ? 0 : any);
        c.weights.push_back(0.25F * static_cast<float>(1 + random() % 7));
    }
}

namespace {

class SoakCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "soak", "Run dispatch and combine of MoE layers with random shapes, and compare every byte of the results");
        app->add_option("--launches", launches_,
                        "Total number of launches (dispatch and combine calls), rounded up to even")
            ->check(CLI::Range(2, 100'000'000))
            ->capture_default_str();
        app->add_option("--launches-per-layer", launches_per_layer_,
                        "Number of launches (dispatch and combine calls) per layer, rounded up to even")
            ->check(CLI::Range(2, 1'000'000))
            ->capture_default_str();
        app->add_option("--seed", seed_, "Seed of the shapes and the routings")->capture_default_str();
        return app;
    }

    int run() override {
        return run_in_job("soak", [this](const Job& job) { return soak(job); });
    }

private:
    Status soak(const Job& job) {
        const auto begin = std::chrono::steady_clock::now();
        const auto mapped = all_mapped(job);
        if (!mapped.ok()) return mapped.status();
        bench::TerminalProgress progress(job.is_reporter());
        while (done_ < launches_) {
            progress.line().begin_step(fmt::format("verifying layer {}, launch", layers_), done_, launches_);
            if (Status s = soak_layer(job); !s.ok()) return s;
            ++layers_;
        }
        progress.line().clear();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        if (job.is_reporter()) {
            std::cout << fmt::format(
                "soak: {} launches of {} layers on {} PEs, seed {}{}: every byte of every result equals the "
                "reference; the run took {:.1f} s\n",
                done_, layers_, job.pes(), seed_, mapped.value() ? "" : ", not all memory mapped", took.count());
        }
        return {};
    }

    // Collective. Returns whether every PE has mapped the symmetric memory of all PEs.
    static Result<bool> all_mapped(const Job& job) {
        auto probe = make_symmetric<double>(1);
        if (!probe.ok()) return probe.status();
        bool all = true;
        for (int pe = 0; pe < job.pes(); ++pe) all = all && npushmem_ptr(probe.value().get(), pe) != nullptr;
        const auto gathered = job.allgather({all ? 1.0 : 0.0});
        if (!gathered.ok()) return gathered.status();
        return std::ranges::count(gathered.value(), 0.0) == 0;
    }

    Status soak_layer(const Job& job) {
        SoakShape shape = soak_shape(seed_, layers_, job.pes());
        std::mt19937_64 random(mixed_seed(job.pe()));
        reroute(shape, random);
        auto layer = RoundTripLayer::create(job, shape.layer, shape.options, shape.capacity);
        if (!layer.ok()) return within(shape, layer.status());
        std::optional<Difference> difference;
        const std::uint64_t end = done_ + launches_per_layer_;
        while (done_ < end && done_ < launches_) {
            reroute(shape, random);
            if (Status s = run_round_trip(*layer.value(), done_, difference); !s.ok()) return within(shape, s);
            done_ += 2;
        }
        const auto found = lowest_pe_difference(job, difference);
        if (!found.ok()) return found.status();
        return found.value() ? within(shape, {Code::state, difference_text(*found.value())}) : Status{};
    }

    // Calls dispatch once and combine once. Returns ok even for a wrong result, because all PEs make the same calls.
    // Stores the first wrong result in `difference`.
    static Status run_round_trip(RoundTripLayer& layer, std::uint64_t salt, std::optional<Difference>& difference) {
        layer.fill(salt);
        if (Status s = layer.dispatch(); !s.ok()) return s;
        layer.run_experts();
        if (!difference) difference = layer.verify_rows(salt);
        if (Status s = layer.combine(); !s.ok()) return s;
        if (!difference) difference = layer.verify_output(salt);
        return {};
    }

    // Returns the seed of this PE's routings of the current layer.
    [[nodiscard]] std::uint64_t mixed_seed(int pe) const {
        return moe::row_seed({seed_, pe, static_cast<std::uint32_t>(layers_), 0});
    }

    [[nodiscard]] Status within(const SoakShape& shape, const Status& status) const {
        const Workload& w = shape.layer.workload;
        return status.within(fmt::format(
            "seed {}, layer {} ({} experts, top-{}, rows of {} {}, up to {} tokens, mode {}, ring at the {}, "
            "copy {}, one row per {}), detected after {} launches",
            seed_, layers_, w.experts, w.top_k, w.hidden, name_of(w.type), w.tokens, shape.options.mode,
            shape.options.ring, shape.options.copy, shape.options.rows, done_));
    }

    std::uint64_t launches_ = 1000;
    std::uint64_t launches_per_layer_ = 40;
    std::uint64_t seed_ = 1;
    std::uint64_t done_ = 0;
    std::uint64_t layers_ = 0;
};

}  // namespace

std::unique_ptr<Subcommand> make_soak_command() { return std::make_unique<SoakCommand>(); }

}  // namespace npushmem::perf
