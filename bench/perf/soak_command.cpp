// npushmem-perf soak: layers of random shapes one after the other, every byte compared.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "bench/perf/report_text.hpp"
#include "bench/perf/round_trip_layer.hpp"
#include "bench/perf/run_in_job.hpp"
#include "bench/perf/soak_case.hpp"
#include "bench/perf/subcommand.hpp"
#include "core/moe/payload.hpp"
#include "npushmem.h"

namespace npushmem::perf {
namespace {

class SoakCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "soak", "Dispatch and combine MoE layers of random shapes for long, and compare every byte");
        app->add_option("--launches", launches_, "Dispatches and combines together")
            ->check(CLI::Range(2, 100'000'000))
            ->capture_default_str();
        app->add_option("--of-a-layer", of_a_layer_, "Dispatches and combines of a shape before the next one")
            ->check(CLI::Range(2, 1'000'000))
            ->capture_default_str();
        app->add_option("--seed", seed_, "Of shapes, routings and payload")->capture_default_str();
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
        while (done_ < launches_) {
            if (Status s = soak_layer(job); !s.ok()) return s;
            ++layers_;
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        if (job.is_reporter()) {
            std::cout << fmt::format(
                "soak: {} launches of {} layers on {} PEs, seed {}{}: every byte of all of them equal to the "
                "reference, in {:.1f} s\n",
                done_, layers_, job.pes(), seed_, mapped.value() ? "" : ", not all memory mapped", took.count());
        }
        return {};
    }

    static Result<bool> all_mapped(const Job& job) {
        auto probe = make_symmetric<double>(1);
        if (!probe.ok()) return probe.status();
        bool all = true;
        for (int pe = 0; pe < job.pes(); ++pe) all = all && npushmem_ptr(probe.value().get(), pe) != nullptr;
        const auto everybodys = job.allgather({all ? 1.0 : 0.0});
        if (!everybodys.ok()) return everybodys.status();
        return std::ranges::count(everybodys.value(), 0.0) == 0;
    }

    Status soak_layer(const Job& job) {
        SoakShape shape = soak_shape(seed_, layers_, job.pes());
        std::mt19937_64 random(mixed_seed(job.pe()));
        reroute(shape, random);
        auto layer = RoundTripLayer::create(job, shape.layer, shape.options, shape.capacity);
        if (!layer.ok()) return within(shape, layer.status());
        std::optional<Difference> difference;
        const std::uint64_t end = done_ + of_a_layer_;
        while (done_ < end && done_ < launches_) {
            reroute(shape, random);
            if (Status s = one_call(*layer.value(), done_, difference); !s.ok()) return within(shape, s);
            done_ += 2;
        }
        const auto found = lowest_pe_difference(job, difference);
        if (!found.ok()) return found.status();
        return found.value() ? within(shape, {Code::state, difference_text(*found.value())}) : Status{};
    }

    // The first difference stays; the calls go on, so that all PEs make the same.
    static Status one_call(RoundTripLayer& layer, std::uint64_t salt, std::optional<Difference>& difference) {
        layer.fill(salt);
        if (Status s = layer.dispatch(); !s.ok()) return s;
        if (!difference) difference = layer.verify_rows(salt);
        if (Status s = layer.combine(); !s.ok()) return s;
        if (!difference) difference = layer.verify_output(salt);
        return {};
    }

    [[nodiscard]] std::uint64_t mixed_seed(int pe) const {
        return moe::row_seed({seed_, pe, static_cast<std::uint32_t>(layers_), 0});
    }

    [[nodiscard]] Status within(const SoakShape& shape, const Status& status) const {
        const Workload& w = shape.layer.workload;
        return status.within(fmt::format(
            "seed {}, layer {} ({} experts, top-{}, {} x {}, up to {} tokens, mode {}, ring at the {}, copy {}), "
            "launch {}",
            seed_, layers_, w.experts, w.top_k, w.hidden, name_of(w.type), w.tokens, shape.options.mode,
            shape.options.ring, shape.options.copy, done_));
    }

    std::uint64_t launches_ = 1000;
    std::uint64_t of_a_layer_ = 40;
    std::uint64_t seed_ = 1;
    std::uint64_t done_ = 0;
    std::uint64_t layers_ = 0;
};

}  // namespace

std::unique_ptr<Subcommand> make_soak_command() { return std::make_unique<SoakCommand>(); }

}  // namespace npushmem::perf
