// npushmem-perf npu-barrier: latency of the NPU's barriers against PEs and algorithm, and what checking costs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

#include "bench/perf/job.hpp"
#include "bench/perf/npu_barrier_table.hpp"
#include "bench/perf/subcommand.hpp"
#include "npushmem.h"
#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/npu.hpp"
#include "npushmem/npu/virtual_time.hpp"

namespace npushmem::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* algorithms[] = {"v1", "v2:2", "v2:4", "v2:8", "v3"};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class NpuBarrierCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "npu-barrier",
            "Latency of the emulated NPU's barriers v1, v2, v3 against PEs; remote writes and reads; "
            "cost of checked mode and schedules explored per second");
        app->add_option("--calls", calls_, "Barriers in a row per measurement")
            ->check(CLI::Range(1, 1000000))
            ->capture_default_str();
        app->add_option("--rounds", rounds_, "Measurements of each; the median counts")
            ->check(CLI::Range(1, 1000))
            ->capture_default_str();
        app->add_option("--svg", svg_, "Draw latency against PEs into this file")->type_name("FILE");
        app->add_option("--virtual-svg", virtual_svg_, "The same of virtual time")->type_name("FILE");
        app->add_option("--model", model_file_,
                        "Device model for virtual time; --print-model prints the default one, to be edited")
            ->type_name("FILE");
        app->add_flag("--print-model", print_model_, "Print the default device model and end");
        app->add_option("--timeline", timeline_,
                        "Write what the pipes do in one barrier v3 of all PEs in virtual time, for a trace viewer")
            ->type_name("FILE");
        return app;
    }

    int run() override {
        if (print_model_) {
            std::cout << npu::DeviceModel{}.text();
            return EXIT_SUCCESS;
        }
        if (Status read = read_model(); !read.ok()) return fail(read.message());
        auto job = Job::start();
        if (!job.ok()) return fail(job.status().message());
        auto table = measure(*job.value());
        if (!table.ok()) return fail(table.status().message());
        if (job.value()->pe() != 0) return EXIT_SUCCESS;
        std::cout << barrier_table_text(table.value()) << checking_cost();
        if (!svg_.empty() && !write(svg_, barrier_table_svg(table.value(), &BarrierRow::seconds))) return EXIT_FAILURE;
        if (!virtual_svg_.empty() &&
            !write(virtual_svg_, barrier_table_svg(table.value(), &BarrierRow::virtual_seconds)))
            return EXIT_FAILURE;
        return timeline_.empty() || write(timeline_, timeline_of(job.value()->pes())) ? EXIT_SUCCESS : EXIT_FAILURE;
    }

private:
    static int fail(const std::string& message) {
        std::cerr << "npushmem-perf npu-barrier: " << message << '\n';
        return EXIT_FAILURE;
    }

    static bool write(const std::string& path, const std::string& text) {
        std::ofstream file(path);
        file << text;
        file.close();
        if (!file) (void)fail(fmt::format("cannot write {}", path));
        return static_cast<bool>(file);
    }

    Status read_model() {
        if (model_file_.empty()) return {};
        auto model = npu::DeviceModel::read(model_file_);
        if (model.ok()) model_ = model.value();
        return model.status();
    }

    // Barriers in a row on all PEs of a job in this process, in virtual time.
    void run_virtually(npu::VirtualTime& time, const npu::BarrierChoice& choice, int pes, int calls) const {
        npu::CheckedJobConfig config = small_job(pes);
        config.check = false;
        auto job = npu::CheckedJob::create(config);
        if (!job.ok()) return;
        auto* state = job.value()->allocate<npu::BarrierState>(1);
        npu::LaunchConfig launch(4);
        launch.hooks = time.hooks();
        static_cast<void>(job.value()->run(launch, [&](npu::Core& core) {
            for (int i = 0; i < calls; ++i)
                npu::sync_by(core, choice, {0, 1, pes}, job.value()->at(core.my_pe(), state));
        }));
    }

    [[nodiscard]] double virtual_latency(const npu::BarrierChoice& choice, int pes) const {
        constexpr int calls = 20;
        npu::VirtualTime time(model_);
        run_virtually(time, choice, pes, calls);
        return time.report().seconds() / calls;
    }

    [[nodiscard]] std::string timeline_of(int pes) const {
        npu::VirtualTime time(model_);
        run_virtually(time, npu::BarrierChoice{npu::BarrierVariant::v3}, pes, 1);
        std::ostringstream text;
        time.write_timeline(text);
        return text.str();
    }

    [[nodiscard]] static npu::CheckedJobConfig small_job(int pes) {
        npu::CheckedJobConfig config{.pes = pes, .heap_bytes = 2 * sizeof(npu::BarrierState)};
        config.device.vector_cores = 2;
        config.device.stack_bytes = 64 * 1024;
        config.schedule.kind = npu::Schedule::Kind::eager;
        return config;
    }

    [[nodiscard]] Result<BarrierTable> measure(const Job& job) const {
        auto state = make_symmetric<npu::BarrierState>(1);
        if (!state.ok()) return state.status();
        BarrierTable table;
        for (const char* name : algorithms) {
            const npu::BarrierChoice choice = npu::BarrierChoice::parse(name).value();
            for (int pes = 2; pes <= job.pes(); pes += pes < 8 ? 1 : pes / 4) {
                auto time = latency(job, state.value().get(), choice, pes);
                if (!time.ok()) return time.status().within(fmt::format("{} on {} PEs", name, pes));
                const double estimated = job.pe() == 0 ? virtual_latency(choice, pes) : 0;
                table.rows.push_back({name, pes, time.value(), estimated, traffic_of(choice, pes)});
            }
        }
        return table;
    }

    // Of the slowest member, in seconds; every PE calls.
    [[nodiscard]] Result<double> latency(const Job& job, npu::BarrierState* state, const npu::BarrierChoice& choice,
                                         int pes) const {
        std::vector<double> times;
        for (int round = 0; round <= rounds_; ++round) {
            // Teams of other sizes have used it.
            *state = {};
            npushmem_barrier_all();
            const auto begin = Clock::now();
            if (job.pe() < pes) {
                npu::Stream& stream = npu::device().default_stream();
                Status status = npu::launch(stream, std::min(4, npu::device().config().blocks),
                                            [=, calls = calls_](npu::Core& core) {
                                                for (int i = 0; i < calls; ++i)
                                                    npu::sync_by(core, choice, {0, 1, pes}, state);
                                            });
                if (status.ok()) status = stream.synchronize();
                if (!status.ok()) return status;
            }
            const auto all = job.all({job.pe() < pes ? seconds_since(begin) / calls_ : 0});
            if (!all.ok()) return all.status();
            // The first warms up.
            if (round > 0) times.push_back(std::ranges::max(all.value()));
        }
        std::ranges::nth_element(times, times.begin() + rounds_ / 2);
        return times[static_cast<std::size_t>(rounds_ / 2)];
    }

    // Signals and polls that leave the PE, counted in a checked job: what one member does in one barrier.
    [[nodiscard]] static BarrierTraffic traffic_of(const npu::BarrierChoice& choice, int pes) {
        auto job = npu::CheckedJob::create(small_job(pes));
        if (!job.ok()) return {};
        auto* state = job.value()->allocate<npu::BarrierState>(1);
        const npu::CheckReport report = job.value()->run(4, [&](npu::Core& core) {
            npu::sync_by(core, choice, {0, 1, pes}, job.value()->at(core.my_pe(), state));
        });
        const auto members = static_cast<std::uint64_t>(pes);
        return {report.remote_signals / members, report.remote_waits / members};
    }

    [[nodiscard]] static double kernel_seconds(bool check, npu::Schedule::Kind kind) {
        npu::CheckedJobConfig config{.pes = 2, .heap_bytes = 1 << 20, .check = check};
        config.schedule.kind = kind;
        auto job = npu::CheckedJob::create(config).value();
        auto* rows = job->allocate<float>(64 * 1024);
        const auto begin = Clock::now();
        static_cast<void>(job->run(4, [&](npu::Core& core) { copy_rows(core, job->at(core.my_pe(), rows)); }));
        return seconds_since(begin);
    }

    // Like the combine: rows in, and out to the peer.
    static void copy_rows(npu::Core& core, float* rows) {
        constexpr std::size_t row = 1024;
        const auto tile = core.ub_alloc<float>(row);
        float* mine = rows + static_cast<std::size_t>(core.index()) * row;
        float* there = core.remote(rows, 1 - core.my_pe()) + static_cast<std::size_t>(32 + core.index()) * row;
        for (int i = 0; i < 200; ++i) {
            core.data_copy(tile, npu::gm(mine, row), row);
            core.set_flag<npu::Pipe::copy_in, npu::Pipe::copy_out>(0);
            core.wait_flag<npu::Pipe::copy_in, npu::Pipe::copy_out>(0);
            core.data_copy(npu::gm(there, row), tile, row);
            core.set_flag<npu::Pipe::copy_out, npu::Pipe::copy_in>(0);
            core.wait_flag<npu::Pipe::copy_out, npu::Pipe::copy_in>(0);
            core.pipe_barrier<npu::Pipe::copy_out>();
        }
    }

    [[nodiscard]] static std::string checking_cost() {
        static_cast<void>(kernel_seconds(false, npu::Schedule::Kind::eager));
        const double fast = kernel_seconds(false, npu::Schedule::Kind::eager);
        const double checked = kernel_seconds(true, npu::Schedule::Kind::lazy);
        npu::CheckedJobConfig config{.pes = 3, .heap_bytes = 2 * sizeof(npu::BarrierState)};
        config.schedule = {.kind = npu::Schedule::Kind::explore, .deferrals = 2, .most = 5000};
        config.device.stack_bytes = 64 * 1024;
        auto job = npu::CheckedJob::create(config).value();
        auto* state = job->allocate<npu::BarrierState>(1);
        const npu::CheckReport report = job->run(1, [&](npu::Core& core) {
            npu::sync_v3(core, {0, 1, 3}, job->at(core.my_pe(), state));
        });
        return fmt::format(
            "checked mode takes {:.1f} times as long as fast mode on rows of 4 KiB\n"
            "exploration of barrier v3 (3 PEs, 2 cores): {} schedules, {:.0f} per second\n",
            checked / fast, report.schedules, static_cast<double>(report.schedules) / report.seconds);
    }

    int calls_ = 1000;
    int rounds_ = 5;
    std::string svg_;
    std::string virtual_svg_;
    std::string model_file_;
    std::string timeline_;
    bool print_model_ = false;
    npu::DeviceModel model_;
};

}  // namespace

std::unique_ptr<Subcommand> make_npu_barrier_command() { return std::make_unique<NpuBarrierCommand>(); }

}  // namespace npushmem::perf
