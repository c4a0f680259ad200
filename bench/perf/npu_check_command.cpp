// npushmem-perf npu-check: what checking kernels costs, and how many schedules are explored per second.
#include <fmt/format.h>

#include <iostream>

#include "bench/perf/checked_combine.hpp"
#include "bench/perf/statistics.hpp"
#include "bench/perf/subcommand.hpp"
#include "npushmem/npu/npu.hpp"

namespace npushmem::perf {
namespace {

class NpuCheckCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "npu-check", "The combine's kernel in checked mode beside fast mode, and schedules explored per second");
        app->add_option("--pes", shape_.pes, "PEs, all in this process")
            ->check(CLI::Range(1, 64))
            ->capture_default_str();
        app->add_option("--tokens", shape_.tokens, "Tokens of each PE, top-8 of 32 experts")
            ->check(CLI::Range(1, 4096))
            ->capture_default_str();
        app->add_option("--hidden", shape_.columns, "Elements of a row, bf16")
            ->check(CLI::Range(1, 65536))
            ->capture_default_str();
        app->add_option("--rounds", rounds_, "Calls of each, in turn; the median counts")
            ->check(CLI::Range(1, 1000))
            ->capture_default_str();
        app->add_option("--schedules", schedules_, "Most schedules to explore")
            ->check(CLI::Range(1, 10'000'000))
            ->capture_default_str();
        return app;
    }

    int run() override {
        auto combine = combine_cost();
        if (!combine.ok()) return fail(combine.status());
        auto exploration = explored();
        if (!exploration.ok()) return fail(exploration.status());
        std::cout << combine.value() << exploration.value();
        return EXIT_SUCCESS;
    }

private:
    static int fail(const Status& status) {
        std::cerr << "npushmem-perf npu-check: " << status.message() << '\n';
        return EXIT_FAILURE;
    }

    static Status time_one(CheckedCombine& combine, std::vector<double>& seconds) {
        const npu::CheckReport report = combine.run();
        if (!report.clean()) return {Code::protocol, report.text()};
        seconds.push_back(report.seconds);
        return {};
    }

    [[nodiscard]] Result<std::string> combine_cost() const {
        auto fast = CheckedCombine::create(shape_, false);
        if (!fast.ok()) return fast.status();
        auto checked = CheckedCombine::create(shape_, true);
        if (!checked.ok()) return checked.status();
        std::vector<double> fast_seconds;
        std::vector<double> checked_seconds;
        // The first round warms up.
        for (int round = 0; round <= rounds_; ++round) {
            if (Status s = time_one(*fast.value(), fast_seconds); !s.ok()) return s;
            if (Status s = time_one(*checked.value(), checked_seconds); !s.ok()) return s;
            if (round == 0) fast_seconds.clear(), checked_seconds.clear();
        }
        const double once = spread_of(std::move(fast_seconds)).median;
        const double watched = spread_of(std::move(checked_seconds)).median;
        return fmt::format(
            "combine of {} PEs in one process, {} tokens each, rows of {} bf16: fast {:.3f} ms, checked {:.3f} ms, "
            "{:.1f} times as long\n",
            shape_.pes, shape_.tokens, shape_.columns, once * 1e3, watched * 1e3, watched / once);
    }

    [[nodiscard]] Result<std::string> explored() const {
        npu::CheckedJobConfig config{.pes = 3, .heap_bytes = 2 * sizeof(npu::BarrierState)};
        config.schedule = {.kind = npu::Schedule::Kind::explore, .deferrals = 2, .max_schedules = schedules_};
        config.device.stack_bytes = 64 * 1024;
        auto job = npu::CheckedJob::create(config);
        if (!job.ok()) return job.status();
        auto* state = job.value()->allocate<npu::BarrierState>(1);
        const npu::CheckReport report = job.value()->run(1, [&](npu::Core& core) {
            npu::sync_v3(core, {0, 1, 3}, job.value()->at(core.my_pe(), state));
        });
        if (!report.clean()) return Status{Code::protocol, report.text()};
        return fmt::format("exploration of barrier v3 (3 PEs, 2 cores each): {} schedules{}, {:.0f} per second\n",
                           report.schedules, report.complete ? ", all that differ in two places" : "",
                           static_cast<double>(report.schedules) / report.seconds);
    }

    CheckedCombineShape shape_;
    int rounds_ = 15;
    std::uint64_t schedules_ = 5000;
};

}  // namespace

std::unique_ptr<Subcommand> make_npu_check_command() { return std::make_unique<NpuCheckCommand>(); }

}  // namespace npushmem::perf
