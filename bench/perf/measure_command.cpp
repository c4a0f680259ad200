// npushmem-perf put, get, atomics, ...: one subcommand for each group of cases.
#include <fmt/format.h>

#include <iostream>

#include "bench/cases/case.hpp"
#include "bench/cases/run_group.hpp"
#include "bench/perf/job.hpp"
#include "bench/perf/measure_options.hpp"
#include "bench/perf/subcommand.hpp"

namespace npushmem::perf {
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
        auto job = Job::start();
        if (!job.ok()) return fail(job.status());
        const Status status = measure(*job.value());
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
        const auto points = bench::run_group(name_, engine);
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
