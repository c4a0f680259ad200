// npushmem-perf combine: from options to report.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>

#include "bench/perf/combine_report.hpp"
#include "bench/perf/combine_run.hpp"
#include "bench/perf/host_memory_free.hpp"
#include "bench/perf/subcommand.hpp"
#include "npushmemx.h"

namespace npushmem::perf {
namespace {

// The least that any PE sees, so that all decide alike.
Result<Place> place_of(const Job& job) {
    npushmemx_heap_info_t heap{};
    if (npushmemx_heap_info(&heap) != 0) return library_failure();
    const auto all = job.all({static_cast<double>(heap.largest_free), static_cast<double>(host_memory_free())});
    if (!all.ok()) return all.status();
    std::array<double, 2> least{all.value()[0], all.value()[1]};
    for (std::size_t i = 0; i < all.value().size(); ++i) least[i % 2] = std::min(least[i % 2], all.value()[i]);
    return Place{job.pe(), job.pes(), static_cast<std::uint64_t>(least[0]), static_cast<std::uint64_t>(least[1])};
}

class CombineCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "combine", "Bring the rows of one MoE layer back to their tokens and add them up, verified, beside memcpy");
        declare_options(*app, options_);
        return app;
    }

    int run() override {
        auto job = Job::start();
        if (!job.ok()) return fail(job.status());
        const Status status = measure(*job.value());
        return status.ok() ? EXIT_SUCCESS : fail(status, job.value()->pe());
    }

private:
    static int fail(const Status& status, int pe = 0) {
        // Failures that concern all PEs reach all; one voice is enough for those.
        if (pe == 0 || status.code() == Code::timeout)
            std::cerr << "npushmem-perf combine: " << status.message() << '\n';
        return EXIT_FAILURE;
    }

    Status measure(const Job& job) {
        const auto place = place_of(job);
        if (!place.ok()) return place.status();
        const auto c = make_combine_case(options_, place.value());
        if (!c.ok()) return c.status();
        const auto result = run_combine(job, c.value(), options_);
        if (!result.ok()) return result.status();
        if (result.value().difference) return {Code::state, difference_text(*result.value().difference)};
        return job.speaks() ? print(c.value(), result.value()) : Status{};
    }

    Status print(const CombineCase& c, const CombineResult& result) const {
        std::cout << combine_report(c, options_, result, npushmemx_describe_map(), npushmemx_describe_nics())
                  << std::flush;
        if (options_.csv.empty()) return {};
        std::ofstream file(options_.csv);
        file << combine_csv(result);
        file.close();
        return file ? Status{} : Status{Code::system, fmt::format("cannot write '{}'", options_.csv)};
    }

    CombineOptions options_;
};

}  // namespace

std::unique_ptr<Subcommand> make_combine_command() { return std::make_unique<CombineCommand>(); }

}  // namespace npushmem::perf
