// npushmem-perf fragments: gathering in the sender beside memcpy and beside plan 1, by the length of the fragments.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "bench/perf/fragments_run.hpp"
#include "bench/perf/report_text.hpp"
#include "bench/perf/run_in_job.hpp"
#include "bench/perf/subcommand.hpp"

namespace npushmem::perf {
namespace {

double median_of(const std::vector<double>& seconds) { return spread_of(seconds).median; }

// How many times as long the first takes as the second, repetition by repetition: what disturbs the machine for longer
// than one disturbs both.
double paired_ratio(const std::vector<double>& seconds, const std::vector<double>& of) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < of.size(); ++i) ratios.push_back(seconds[i] / of[i]);
    return median_of(ratios);
}

std::string line_of(const FragmentKind& kind, const FragmentTimes& t) {
    const bool streams = median_of(t.gather_streaming) < median_of(t.gather_ordinary);
    const auto& gather = streams ? t.gather_streaming : t.gather_ordinary;
    const auto& reorder = streams ? t.reorder_streaming : t.reorder_ordinary;
    const double to_copy = std::min(paired_ratio(t.memcpy_ordinary, gather), paired_ratio(t.memcpy_streaming, gather));
    return fmt::format("  {:<11} {:>7.2f} {:>7.2f} {:>8.2f} {:>8.2f}   {:<9} {:>6.2f} {:>7.2f} {:>14.2f}\n", kind.name,
                       t.bytes / median_of(t.memcpy_ordinary) / 1e9, t.bytes / median_of(t.memcpy_streaming) / 1e9,
                       t.bytes / median_of(t.gather_ordinary) / 1e9, t.bytes / median_of(t.gather_streaming) / 1e9,
                       streams ? "streaming" : "ordinary", to_copy, kind.target, paired_ratio(reorder, gather));
}

class FragmentsCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "fragments", "Gather rows for eight ranks, by the length of what lies together, beside memcpy and plan 1");
        app->add_option("--bytes", bytes_, "Bytes that each PE gathers")
            ->check(CLI::Range(std::int64_t{1} << 16, std::int64_t{1} << 34))
            ->capture_default_str();
        app->add_option("--iterations", repeat_.iterations, "Timed calls")
            ->check(CLI::Range(1, 100000))
            ->capture_default_str();
        app->add_option("--warmup", repeat_.warmup, "Calls before")
            ->check(CLI::Range(0, 100000))
            ->capture_default_str();
        return app;
    }

    int run() override {
        return run_in_job("fragments", [this](const Job& job) { return measure(job); });
    }

private:
    Status measure(const Job& job) const {
        if (job.is_reporter()) std::cout << head(job) << std::flush;
        for (const FragmentKind& kind : fragment_kinds()) {
            const auto times = time_fragments(job, kind, bytes_, repeat_);
            if (!times.ok()) return times.status();
            if (job.is_reporter()) std::cout << line_of(kind, times.value()) << std::flush;
        }
        if (job.is_reporter()) std::cout << cache_section("source and target", 2 * static_cast<double>(bytes_));
        return {};
    }

    [[nodiscard]] std::string head(const Job& job) const {
        return fmt::format(
            "npushmem-perf fragments: {} sending cores (PEs), {} each, {} calls; GB/s of payload, medians\n\n"
            "  {:<11} {:>15} {:>17}   {:<9} {:>6} {:>7} {:>14}\n  {:<11} {:>7} {:>7} {:>8} {:>8}   {:<9} {:>6} {:>7} "
            "{:>14}\n",
            job.pes(), bytes_text(static_cast<double>(bytes_)), repeat_.iterations, "", "memcpy", "gathering",
            "the faster", "ratio", "", "plan 2 to", "fragments", "ordin.", "stream.", "ordin.", "stream.", "stores",
            "to it", "target", "plan 1");
    }

    std::int64_t bytes_ = std::int64_t{256} << 20;
    Repeat repeat_{2, 9};
};

}  // namespace

std::unique_ptr<Subcommand> make_fragments_command() { return std::make_unique<FragmentsCommand>(); }

}  // namespace npushmem::perf
