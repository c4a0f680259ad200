// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf tune-barrier: measures every barrier on this job, and prints the fastest as a rule for the decision
// file.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>

#include "bench/engine/progress_line.hpp"
#include "bench/engine/report.hpp"
#include "bench/perf/job.hpp"
#include "bench/perf/measure_command.hpp"
#include "bench/perf/subcommand.hpp"
#include "npushmemx.h"

namespace npushmem::perf {

namespace {

struct Candidate {
    std::string algorithm;
    std::vector<double> rounds_us;  // per call, at this PE

    [[nodiscard]] double median() const {
        std::vector<double> sorted = rounds_us;
        std::sort(sorted.begin(), sorted.end());
        return sorted.empty() ? 0 : sorted[sorted.size() / 2];
    }
};

// The algorithms to try; those with a radix with each radix that is best for some size.
std::vector<Candidate> candidates(int pes) {
    std::vector<Candidate> out;
    std::istringstream lines(npushmemx_describe_barriers());
    for (std::string line; std::getline(lines, line);) {
        const std::string name = line.substr(0, line.find(' '));
        const auto colon = name.find(':');
        if (name == "two_proc" && pes != 2) continue;
        if (colon == std::string::npos) out.push_back({name, {}});
        for (const int radix : {2, 3, 4, 8, 16})
            if (colon != std::string::npos && radix <= std::max(2, pes))
                out.push_back({fmt::format("{}:{}", name.substr(0, colon), radix), {}});
    }
    return out;
}

class TuneBarrierCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "tune-barrier", "Time every barrier on this job; the fastest becomes a rule for NPUSHMEM_COLL_TUNING_FILE");
        app->add_option("--output", output_, "Append the rule to this file; default: print it")->type_name("FILE");
        app->add_option("--rounds", rounds_, "Timings of each barrier")
            ->check(CLI::Range(1, 10000))
            ->capture_default_str();
        app->add_option("--calls", calls_, "Back-to-back calls per round")
            ->check(CLI::Range(1, 1000000))
            ->capture_default_str();
        declare_json(*app, json_);
        return app;
    }

    int run() override {
        const auto job = Job::start();
        if (!job) return EXIT_FAILURE;
        std::vector<Candidate> all = candidates(job->pes());
        bench::TerminalProgress progress(job->is_reporter());
        const auto rounds = static_cast<std::size_t>(rounds_);
        // All variants run in each round, so that disturbances of the machine affect all alike.
        for (std::size_t round = 0; round < rounds; ++round)
            for (std::size_t i = 0; i < all.size(); ++i) {
                progress.line().begin_step("timing " + all[i].algorithm, round * all.size() + i, rounds * all.size());
                if (time(all[i]) != 0) return fail(fmt::format("{} failed", all[i].algorithm));
            }
        progress.line().clear();
        return job->pe() == 0 ? deliver(all, job->pes()) : EXIT_SUCCESS;
    }

private:
    static int fail(const std::string& message) {
        std::cerr << "npushmem-perf tune-barrier: " << message << '\n';
        return EXIT_FAILURE;
    }

    [[nodiscard]] int time(Candidate& one) const {
        using Clock = std::chrono::steady_clock;
        if (const int code = npushmemx_barrier_all_by(one.algorithm.c_str()); code != 0) return code;
        const auto begin = Clock::now();
        for (int call = 0; call < calls_; ++call)
            if (const int code = npushmemx_barrier_all_by(one.algorithm.c_str()); code != 0) return code;
        one.rounds_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls_);
        return 0;
    }

    static bench::ResultTable table_of(const std::vector<Candidate>& all, int pes, int per_node, double per_core) {
        bench::ResultTable table{"tune-barrier", {"algorithm", "pes", "pes_per_node", "pes_per_core", "median_us"}, {}};
        for (const Candidate& one : all)
            table.rows.push_back({one.algorithm, std::int64_t{pes}, std::int64_t{per_node}, per_core, one.median()});
        return table;
    }

    [[nodiscard]] int deliver(std::vector<Candidate>& all, int pes) const {
        std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.median() < b.median(); });
        int per_node = 0;
        double per_core = 0;
        (void)npushmemx_get_pe_density(&per_node, &per_core);
        std::string text =
            fmt::format("# {} PEs, {} per node, {:.3g} per core; medians of {} rounds of {} calls, in us\n", pes,
                        per_node, per_core, rounds_, calls_);
        for (const Candidate& one : all) text += fmt::format("#   {:<26} {:9.3f}\n", one.algorithm, one.median());
        // The range is a little wider than the measured value: similar machines grant slightly different shares.
        text += fmt::format("barrier {} {} {:.4g}-{:.4g} {}\n", pes, per_node, per_core * 0.99, per_core * 1.01,
                            all.front().algorithm);
        if (const Status written = write_json(json_, json_report(table_of(all, pes, per_node, per_core)));
            !written.ok())
            return fail(written.message());
        const Status delivered = deliver_rules(text, output_, json_);
        return delivered.ok() ? EXIT_SUCCESS : fail(delivered.message());
    }

    std::string output_;
    std::string json_;
    int rounds_ = 11;
    int calls_ = 200;
};

}  // namespace

std::unique_ptr<Subcommand> make_tune_barrier_command() { return std::make_unique<TuneBarrierCommand>(); }

}  // namespace npushmem::perf
