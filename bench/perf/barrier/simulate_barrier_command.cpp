// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf simulate-barrier: runs the real schedules under a cost model, and compares the result with
// measurements.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <sstream>

#include "bench/engine/progress_line.hpp"
#include "bench/engine/report.hpp"
#include "bench/perf/child_processes.hpp"
#include "bench/perf/measure_command.hpp"
#include "bench/perf/subcommand.hpp"
#include "bench/simulate/sweep.hpp"
#include "core/base/host_facts.hpp"

namespace npushmem::perf {

namespace {

namespace fs = std::filesystem;
using simulate::Model;

constexpr int max_members = 1'000'000;

// Every algorithm; those with a radix with each radix that is best for some size.
std::vector<std::string> all_algorithms() {
    std::vector<std::string> names;
    for (const barrier::AlgorithmInfo& info : barrier::Algorithms::table) {
        if (!info.has_radix) names.emplace_back(info.name);
        if (info.has_radix)
            for (const int radix : {4, 8}) names.push_back(fmt::format("{}:{}", info.name, radix));
    }
    return names;
}

struct Measured {
    std::string algorithm;
    double microseconds;
};

// Parses the comment lines of tune-barrier: "#   <algorithm> <microseconds>".
std::vector<Measured> read_times(const fs::path& path) {
    std::vector<Measured> out;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string mark;
        Measured one{};
        if (words >> mark >> one.algorithm >> one.microseconds && mark == "#") out.push_back(one);
    }
    return out;
}

class SimulateBarrierCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand("simulate-barrier",
                                               "Run the real barrier schedules under the LogGP model, for up to a "
                                               "million PEs; --compare measures the model's error");
        CLI::Option* pes = app->add_option("--pes", members_,
                                           "Sizes of the team, up to 1000000 (a minute and 2 GB for all algorithms)")
                               ->delimiter(',')
                               ->check(CLI::Range(2, max_members))
                               ->capture_default_str();
        CLI::Option* per_node =
            app->add_option("--pes-per-node", per_node_, "PEs per node; if more than --pes, all are on one node")
                ->check(CLI::Range(1, max_members))
                ->capture_default_str();
        CLI::Option* algorithms =
            app->add_option("--algorithms", algorithms_, "Algorithms, named as in NPUSHMEM_BARRIER_ALGO; default: all")
                ->delimiter(',');
        app->add_option("--parameters", parameters_, "File with the model's parameters; see bench/simulate/model.hpp");
        app->add_flag("--measure", measure_, "Measure the node's parameters on this machine");
        CLI::Option* compare = app->add_option("--compare", compare_,
                                               "Run jobs of these sizes on this machine and print the model's error")
                                   ->delimiter(',')
                                   ->check(CLI::Range(2, 4096));
        CLI::Option* csv = app->add_option("--csv", csv_, "Write the table to this file")->type_name("FILE");
        CLI::Option* svg = app->add_option("--svg", svg_, "Draw the table into this file")->type_name("FILE");
        declare_json(*app, json_);
        for (CLI::Option* other : {pes, per_node, algorithms, csv, svg}) compare->excludes(other);
        return app;
    }

    int run() override {
        const Status done = compare_.empty() ? predict() : compare();
        if (done.ok()) return EXIT_SUCCESS;
        std::cerr << "npushmem-perf simulate-barrier: " << done.message() << '\n';
        return EXIT_FAILURE;
    }

private:
    Result<Model> model() const {
        Model model = simulate::default_model();
        if (measure_ || !compare_.empty()) {
            auto measured = simulate::measure_model(model);
            if (!measured.ok()) return measured.status();
            model = measured.value();
        }
        const Status read = simulate::read_model_file(parameters_, model);
        return read.ok() ? Result<Model>(model) : Result<Model>(read);
    }

    Result<std::vector<barrier::Plan>> plans() const {
        std::vector<barrier::Plan> out;
        for (const std::string& name : algorithms_.empty() ? all_algorithms() : algorithms_) {
            auto plan = barrier::parse_plan(name);
            if (!plan.ok()) return plan.status();
            out.push_back(plan.value());
        }
        return out;
    }

    Status predict() {
        auto wanted = plans();
        if (!wanted.ok()) return wanted.status();
        auto by = model();
        if (!by.ok()) return by.status();
        std::sort(members_.begin(), members_.end());
        members_.erase(std::unique(members_.begin(), members_.end()), members_.end());
        bench::TerminalProgress progress(true);
        auto result =
            simulate::sweep(wanted.value(), members_, per_node_, by.value(), [&](const simulate::SweepStep& step) {
                progress.line().begin_step(fmt::format("simulating {} of {} PEs", step.algorithm, step.members),
                                           step.done, step.total, step.share);
            });
        progress.line().clear();
        if (!result.ok()) return result.status();
        if (!is_standard_output(json_))
            std::cout << describe(by.value()) << fmt::format("{} PEs per node\n", per_node_) << table(result.value());
        if (Status kept = write_json(json_, json_report(results_of(result.value()))); !kept.ok()) return kept;
        const std::string title =
            fmt::format("Barriers under LogGP, {} PE{} per node", per_node_, per_node_ == 1 ? "" : "s");
        if (Status kept = write_file(csv_, simulate::csv(result.value())); !kept.ok()) return kept;
        return write_file(svg_, to_svg(result.value(), title));
    }

    static bench::ResultTable results_of(const simulate::Sweep& sweep) {
        bench::ResultTable results{
            "simulate-barrier",
            {"algorithm", "pes", "pes_per_node", "time_us", "messages", "network_messages", "turns", "bytes_per_pe"},
            {}};
        for (const simulate::Series& series : sweep.series)
            for (std::size_t i = 0; i < sweep.members.size(); ++i) {
                const simulate::Outcome& outcome = series.outcomes[i];
                if (outcome.nanoseconds <= 0) continue;
                results.rows.push_back({series.name, std::int64_t{sweep.members[i]}, std::int64_t{sweep.per_node},
                                        outcome.nanoseconds / 1000, static_cast<std::int64_t>(outcome.messages),
                                        static_cast<std::int64_t>(outcome.network),
                                        static_cast<std::int64_t>(outcome.turns), std::int64_t{outcome.slots} * 64});
            }
        return results;
    }

    static Status write_file(const std::string& path, const std::string& text) {
        if (path.empty()) return {};
        std::ofstream file(path);
        file << text;
        file.close();
        return file ? Status{} : Status{Code::system, fmt::format("cannot write \"{}\"", path)};
    }

    // Jobs on this machine, whose PEs share its cores.
    Status compare() {
        auto by = model();
        if (!by.ok()) return by.status();
        if (by.value().cores_per_node == 0) {
            const CpuFacts here = read_cpu_facts();
            by.value().cores_per_node =
                std::max(1, static_cast<int>(usable_cores(std::span(&here.affinity, 1), here.quota)));
        }
        if (!is_standard_output(json_))
            std::cout << describe(by.value())
                      << fmt::format("{:>6} {:<26} {:>12} {:>12} {:>8}\n", "PEs", "algorithm", "measured us",
                                     "model us", "error");
        bench::TerminalProgress progress(true);
        for (std::size_t i = 0; i < compare_.size(); ++i) {
            progress.line().begin_step(fmt::format("measuring a job of {} PEs", compare_[i]), i, compare_.size());
            auto times = time_here(compare_[i]);
            progress.line().clear();
            if (!times.ok()) return times.status();
            if (Status done = compare_size(compare_[i], times.value(), by.value()); !done.ok()) return done;
        }
        if (Status kept = write_json(json_, json_report(compared_)); !kept.ok()) return kept;
        if (count_ != 0 && !is_standard_output(json_))
            std::cout << fmt::format(
                "the model is off by a factor of {:.2f} on (geometric) average, over {} barriers\n",
                std::exp(logarithms_ / count_), count_);
        return {};
    }

    Status compare_size(int members, const std::vector<Measured>& times, const Model& by) {
        for (const Measured& one : times) {
            auto plan = barrier::parse_plan(one.algorithm);
            if (!plan.ok()) continue;  // "auto" and its like
            auto outcome = simulate::simulate(plan.value(), {members, members}, by);
            if (!outcome.ok()) return outcome.status();
            const double predicted = outcome.value().nanoseconds / 1000;
            compared_.rows.push_back({std::int64_t{members}, one.algorithm, one.microseconds, predicted});
            if (!is_standard_output(json_))
                std::cout << fmt::format("{:>6} {:<26} {:>12.3f} {:>12.3f} {:>+7.0f}%\n", members, one.algorithm,
                                         one.microseconds, predicted, 100 * (predicted / one.microseconds - 1))
                          << std::flush;
            logarithms_ += std::abs(std::log(predicted / one.microseconds));
            ++count_;
        }
        return {};
    }

    static Result<std::vector<Measured>> time_here(int members) {
        std::error_code error;
        const fs::path self = fs::read_symlink("/proc/self/exe", error);
        if (error) return Status{Code::system, "cannot find this program's own path: " + error.message()};
        std::string name = (fs::temp_directory_path(error) / "perf-times-XXXXXX").string();
        const int file = mkstemp(name.data());
        if (file < 0) return Status{Code::system, fmt::format("cannot make a temporary file like \"{}\"", name)};
        close(file);
        ChildProcesses job;
        Status done = job.start({(self.parent_path() / "npushmem-run").string(), "-n", std::to_string(members),
                                 self.string(), "tune-barrier", "--rounds", "7", "--calls", "100", "--output", name});
        const Status ended = job.wait();
        if (done.ok()) done = ended;
        auto times = read_times(name);
        fs::remove(name, error);
        if (!done.ok()) return done;
        if (times.empty()) return Status{Code::protocol, fmt::format("the job of {} PEs gave no times", members)};
        return times;
    }

    std::vector<int> members_{2, 4, 8, 16, 32, 64, 256, 1024, 4096, 16384};
    int per_node_ = 1;
    std::vector<std::string> algorithms_;
    std::string parameters_;
    bool measure_ = false;
    std::vector<int> compare_;
    std::string csv_;
    std::string json_;
    bench::ResultTable compared_{"simulate-barrier --compare", {"pes", "algorithm", "measured_us", "model_us"}, {}};
    std::string svg_;
    double logarithms_ = 0;  // of the factors between model and measurement
    int count_ = 0;
};

}  // namespace

std::unique_ptr<Subcommand> make_simulate_barrier_command() { return std::make_unique<SimulateBarrierCommand>(); }

}  // namespace npushmem::perf
