// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/measure_command.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <thread>

#include "bench/cases/case.hpp"
#include "bench/cases/run_group.hpp"
#include "bench/perf/job.hpp"
#include "bench/perf/subcommand.hpp"

namespace npushmem::perf {

namespace {

Status write_file(const std::string& path, const std::string& text) {
    if (path.empty()) return {};
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    return file ? Status{} : Status{Code::system, fmt::format("cannot write '{}'", path)};
}

// The value of the first line that begins with `key`.
std::string processor(std::istream& facts, const std::string& key) {
    for (std::string line; std::getline(facts, line);) {
        const auto colon = line.find(": ");
        if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "an unnamed processor";
}

}  // namespace

bench::EngineSettings MeasureOptions::settings() const {
    bench::EngineSettings settings;
    settings.rounds = rounds;
    settings.batch = std::chrono::microseconds(batch_us);
    return settings;
}

void declare_options(CLI::App& app, MeasureOptions& options) {
    app.add_option("--rounds", options.rounds, "Timings of each variant, alternating with the others")
        ->check(positive())
        ->capture_default_str();
    app.add_option("--batch", options.batch_us, "Duration of one timed batch in microseconds")
        ->check(positive())
        ->capture_default_str();
    app.add_option("--csv", options.csv, "Write the results to this file, one line per variant");
    declare_json(app, options.json);
}

void declare_json(CLI::App& app, std::string& json) {
    app.add_option("--json", json,
                   "Write the results to this file, as JSON; -: to standard output, instead of the table")
        ->type_name("FILE|-");
}

Status write_json(const std::string& json, const std::string& text) {
    if (!is_standard_output(json)) return write_file(json, text);
    std::cout << text << std::flush;
    return {};
}

Status deliver_rules(const std::string& rules, const std::string& output, const std::string& json) {
    if (output.empty()) {
        if (!is_standard_output(json)) std::cout << rules;
        return {};
    }
    std::ofstream file(output, std::ios::app);
    file << rules;
    file.close();
    return file ? Status{} : Status{Code::system, fmt::format("cannot write \"{}\"", output)};
}

Status deliver(const bench::ReportHead& head, const std::vector<bench::PointResult>& points,
               const MeasureOptions& options) {
    if (!is_standard_output(options.json)) std::cout << bench::text_report(head, points) << std::flush;
    Status written = write_file(options.csv, bench::csv_report(head, points));
    if (Status json = write_json(options.json, bench::json_report(head, points)); !json.ok()) written = json;
    return written;
}

std::string machine_name() {
    std::ifstream facts("/proc/cpuinfo");
    return fmt::format("{} x {}", std::thread::hardware_concurrency(), processor(facts, "model name"));
}

// npushmem-perf put, get, atomics, ...: one subcommand for each group of cases.

namespace {

class MeasureCommand final : public Subcommand {
public:
    explicit MeasureCommand(const bench::Group& group) : name_(group.name), summary_(group.summary) {}

    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(name_, summary_);
        declare_options(*app, options_);
        return app;
    }

    int run() override {
        const auto job = Job::start();
        if (!job) return EXIT_FAILURE;
        const Status status = measure(*job);
        return status.ok() ? EXIT_SUCCESS : fail(status);
    }

private:
    int fail(const Status& status) const {
        std::cerr << fmt::format("npushmem-perf {}: {}\n", name_, status.message());
        return EXIT_FAILURE;
    }

    Status measure(const Job& job) const {
        bench::SteadyClock clock;
        bench::Engine engine(clock, options_.settings());
        bench::TerminalProgress progress(job.is_reporter());
        engine.report_to(&progress.line());
        const auto points = bench::run_group(name_, engine, progress.line());
        progress.line().clear();
        if (!points.ok()) return points.status();
        if (!job.is_reporter()) return {};
        return deliver({name_, machine_name(), job.pes(), engine.clock_ns(), engine.settings()}, points.value(),
                       options_);
    }

    std::string name_;
    std::string summary_;
    MeasureOptions options_;
};

}  // namespace

std::unique_ptr<Subcommand> make_measure_command(const bench::Group& group) {
    return std::make_unique<MeasureCommand>(group);
}

}  // namespace npushmem::perf
