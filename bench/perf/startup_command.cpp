// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf startup: measures the time of an empty job. It runs without a launcher and starts the launcher itself.
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "bench/engine/progress_line.hpp"
#include "bench/perf/bare_job.hpp"
#include "bench/perf/child_processes.hpp"
#include "bench/perf/job.hpp"
#include "bench/perf/measure_command.hpp"
#include "bench/perf/subcommand.hpp"
#include "npushmem.h"

namespace npushmem::perf {
namespace {

// Roles of the processes of a measured run, chosen by --as.
constexpr const char* role_pe = "pe";        // init, barrier, finalize
constexpr const char* role_bare = "bare";    // see BareJob
constexpr const char* role_empty = "empty";  // exits at once: the cost of starting the processes

class StartupCommand final : public Subcommand {
public:
    StartupCommand() {
        options_.rounds = 5;
        options_.batch_us = 1;  // one job is a batch
    }

    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "startup",
            "An empty job (init, barrier, finalize) from start to end; beside as many empty processes, the same "
            "started by npushmem-run, and processes that only load the plugins, share memory and variables and pass "
            "barriers");
        app->add_option("--pes", pes_, "Sizes of the job")->delimiter(',')->capture_default_str();
        app->add_option("--as", role_, "Role of the started processes")->group("");
        app->add_option("--memory", memory_, "Descriptor of a bare job's memory")->group("");
        app->add_option("--plugin", plugins_, "Library that a process of a bare job loads")->group("");
        declare_options(*app, options_);
        return app;
    }

    int run() override {
        if (role_ == role_pe) return run_pe();
        if (role_ == role_empty) return EXIT_SUCCESS;
        if (role_ == role_bare) {
            const Status done = BareJob::take_part(memory_, pes_.front(), plugins_);
            return done.ok() ? EXIT_SUCCESS : fail(done);
        }
        const Status status = measure();
        return status.ok() ? EXIT_SUCCESS : fail(status);
    }

private:
    static int fail(const Status& status) {
        std::cerr << "npushmem-perf startup: " << status.message() << '\n';
        return EXIT_FAILURE;
    }

    static int run_pe() {
        const auto job = Job::start();
        if (!job) return EXIT_FAILURE;
        Job::barrier();
        return EXIT_SUCCESS;
    }

    // Returns the plugins of an empty job, beside the library.
    static std::vector<std::string> plugin_files() {
        Dl_info library{};
        if (::dladdr(reinterpret_cast<void*>(&npushmem_finalize), &library) == 0) return {};
        const auto plugins = std::filesystem::path(library.dli_fname).parent_path() / "npushmem";
        std::vector<std::string> files;
        for (const char* name : {"bootstrap_uid", "transport_self", "transport_p2p"})
            files.push_back((plugins / fmt::format("libnpushmem_{}.so", name)).string());
        return files;
    }

    Status measure() {
        std::error_code error;
        self_ = std::filesystem::read_symlink("/proc/self/exe", error);
        if (error) return {Code::system, "cannot find this program's own path: " + error.message()};
        bench::SteadyClock clock;
        bench::Engine engine(clock, options_.settings());
        bench::SoloWorkerGroup alone;
        std::vector<bench::PointResult> points;
        bench::TerminalProgress progress(true);
        engine.report_to(&progress.line());
        for (const int pes : pes_) {
            const bench::Point point = point_of(pes);
            progress.line().begin_step("measuring " + point.name, points.size(), pes_.size());
            points.push_back(engine.measure(point, alone));
        }
        progress.line().clear();
        if (!failed_.ok()) return failed_;
        return deliver({"startup", machine_name(), 1, engine.clock_ns(), engine.settings()}, points, options_);
    }

    bench::Point point_of(int pes) {
        bench::Point point{.name = fmt::format("empty job, {} PE{}", pes, pes == 1 ? "" : "s")};
        point.variants.push_back(
            {"npushmem", [this, pes](std::uint64_t times) { repeat(times, 1, job(pes, role_pe)); }, false});
        point.variants.push_back({"launched empty processes",
                                  [this, pes](std::uint64_t times) { repeat(times, 1, job(pes, role_empty)); }, false});
        point.variants.push_back(
            {"launched bare job", [this, pes](std::uint64_t times) { repeat_bare(times, pes); }, false});
        point.variants.push_back({"empty processes",
                                  [this, pes](std::uint64_t times) {
                                      repeat(times, pes, {self_.string(), "startup", "--as", role_empty});
                                  },
                                  true});
        return point;
    }

    [[nodiscard]] std::vector<std::string> job(int pes, const char* role) const {
        const auto launcher = self_.parent_path() / "npushmem-run";
        return {launcher.string(), "-n", std::to_string(pes), self_.string(), "startup", "--as", role};
    }

    void repeat_bare(std::uint64_t times, int pes) {
        for (std::uint64_t i = 0; i < times && failed_.ok(); ++i) {
            const auto job = BareJob::create(pes);
            failed_ = job.status();
            if (!failed_.ok()) return;
            std::vector<std::string> arguments = this->job(pes, role_bare);
            arguments.insert(arguments.end(),
                             {"--pes", std::to_string(pes), "--memory", std::to_string(job.value().descriptor())});
            for (const std::string& file : plugin_files()) arguments.insert(arguments.end(), {"--plugin", file});
            repeat(1, 1, arguments);
        }
    }

    // Starts `copies` of the program at once and waits for them. After a failure it starts no more.
    void repeat(std::uint64_t times, int copies, const std::vector<std::string>& arguments) {
        for (std::uint64_t i = 0; i < times && failed_.ok(); ++i) {
            ChildProcesses children;
            for (int copy = 0; copy < copies && failed_.ok(); ++copy) failed_ = children.start(arguments);
            const Status ended = children.wait();
            if (failed_.ok()) failed_ = ended;
        }
    }

    std::vector<int> pes_{1, 8, 64, 256};
    std::string role_;
    int memory_ = -1;
    std::vector<std::string> plugins_;
    MeasureOptions options_;
    std::filesystem::path self_;
    Status failed_;
};

}  // namespace

std::unique_ptr<Subcommand> make_startup_command() { return std::make_unique<StartupCommand>(); }

}  // namespace npushmem::perf
