// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf npu-barrier: latency of the NPU's barriers by number of PEs and algorithm.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include "bench/engine/progress_line.hpp"
#include "bench/engine/report.hpp"
#include "bench/perf/barrier/npu_barrier.hpp"
#include "bench/perf/job.hpp"
#include "bench/perf/measure_command.hpp"
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
            "npu-barrier", "Latency of the emulated NPU's barriers v1, v2, v3 against PEs; remote writes and reads");
        app->add_option("--calls", calls_, "Back-to-back barriers per measurement")
            ->check(CLI::Range(1, 1000000))
            ->capture_default_str();
        app->add_option("--rounds", rounds_, "Measurements of each barrier; the median is reported")
            ->check(CLI::Range(1, 1000))
            ->capture_default_str();
        app->add_option("--pes", pes_, "Number of PEs; default: 2, 3, ... up to all")->check(CLI::Range(2, 1 << 20));
        app->add_option("--cores", cores_, "Vector cores per PE, in whole blocks; at most 8 in virtual time")
            ->check(CLI::Range(1, 1 << 14))
            ->capture_default_str();
        declare_json(*app, json_);
        app->add_option("--svg", svg_, "Draw latency by number of PEs into this file")->type_name("FILE");
        app->add_option("--virtual-svg", virtual_svg_, "The same in virtual time")->type_name("FILE");
        app->add_option("--model", model_file_, "Device model for virtual time; --print-model prints the default model")
            ->type_name("FILE");
        app->add_flag("--print-model", print_model_, "Print the default device model and exit");
        app->add_option("--timeline", timeline_,
                        "Write the pipes' activity in one barrier v3 of all PEs in virtual time, for a trace viewer")
            ->type_name("FILE");
        return app;
    }

    int run() override {
        if (print_model_) {
            std::cout << npu::DeviceModel{}.text();
            return EXIT_SUCCESS;
        }
        if (Status read = read_model(); !read.ok()) return fail(read.message());
        const auto job = Job::start();
        if (!job) return EXIT_FAILURE;
        if (Status sizes = check_sizes(*job); !sizes.ok()) return fail(sizes.message());
        auto table = measure(*job);
        if (!table.ok()) return fail(table.status().message());
        if (job->pe() != 0) return EXIT_SUCCESS;
        if (!is_standard_output(json_)) std::cout << barrier_table_text(table.value());
        if (const Status written = write_json(json_, json_report(results_of(table.value()))); !written.ok())
            return fail(written.message());
        if (!svg_.empty() && !write(svg_, barrier_table_svg(table.value(), &BarrierRow::seconds))) return EXIT_FAILURE;
        if (!virtual_svg_.empty() &&
            !write(virtual_svg_, barrier_table_svg(table.value(), &BarrierRow::virtual_seconds)))
            return EXIT_FAILURE;
        return timeline_.empty() || write(timeline_, timeline_of(job->pes())) ? EXIT_SUCCESS : EXIT_FAILURE;
    }

private:
    static int fail(const std::string& message) {
        std::cerr << "npushmem-perf npu-barrier: " << message << '\n';
        return EXIT_FAILURE;
    }

    static bench::ResultTable results_of(const BarrierTable& table) {
        bench::ResultTable results{
            "npu-barrier", {"algorithm", "pes", "seconds", "virtual_seconds", "remote_writes", "remote_reads"}, {}};
        for (const BarrierRow& row : table.rows)
            results.rows.push_back({row.algorithm, std::int64_t{row.pes}, row.seconds, row.virtual_seconds,
                                    static_cast<std::int64_t>(row.traffic.remote_writes),
                                    static_cast<std::int64_t>(row.traffic.remote_reads)});
        return results;
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

    // Times back-to-back barriers on all PEs of a job in this process, in virtual time.
    void run_virtually(npu::VirtualTime& time, const npu::BarrierChoice& choice, int pes, int calls) const {
        npu::CheckedJobConfig config = small_job(pes);
        config.check = false;
        auto job = npu::CheckedJob::create(config);
        if (!job.ok()) return;
        auto* state = job.value()->allocate<npu::BarrierState>(1);
        npu::LaunchConfig launch(config.device.blocks);
        launch.hooks = time.hooks();
        static_cast<void>(job.value()->run(launch, [&](npu::Core& core) {
            for (int i = 0; i < calls; ++i)
                npu::sync_with_choice(core, choice, {0, 1, pes}, job.value()->at(core.my_pe(), state));
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

    // All PEs are in this process; one thread runs every core in turn.
    [[nodiscard]] npu::CheckedJobConfig small_job(int pes) const {
        npu::CheckedJobConfig config{.pes = pes, .heap_bytes = 2 * sizeof(npu::BarrierState)};
        config.device.vector_cores = npu::device().config().vector_cores;
        config.device.blocks = std::min(blocks(), 4);
        config.device.stack_bytes = 64 * 1024;
        config.schedule.kind = npu::Schedule::Kind::eager;
        return config;
    }

    // In whole blocks.
    [[nodiscard]] int blocks() const {
        const int each = npu::device().config().vector_cores;
        return (cores_ + each - 1) / each;
    }

    [[nodiscard]] Status check_sizes(const Job& job) const {
        const npu::DeviceConfig& device = npu::device().config();
        if (blocks() > device.blocks) {
            return {Code::argument,
                    fmt::format("--cores {} is more than a device has, {} blocks of {} cores; use at most {}", cores_,
                                device.blocks, device.vector_cores, device.blocks * device.vector_cores)};
        }
        if (pes_ > job.pes()) {
            return {Code::argument, fmt::format("--pes {} is more than the {} PEs of this job; use at most {}, or "
                                                "start more with npushmem-run -n",
                                                pes_, job.pes(), job.pes())};
        }
        return {};
    }

    // Numbers of PEs to measure with.
    [[nodiscard]] std::vector<int> sizes(int all) const {
        if (pes_ != 0) return {pes_};
        std::vector<int> sizes;
        for (int pes = 2; pes <= all; pes += pes < 8 ? 1 : pes / 4) sizes.push_back(pes);
        return sizes;
    }

    // On PE 0; elsewhere it stays empty.
    [[nodiscard]] Result<BarrierTable> measure(const Job& job) const {
        auto state = make_symmetric<npu::BarrierState>(1);
        if (!state.ok()) return state.status();
        BarrierTable table;
        bench::TerminalProgress progress(job.is_reporter());
        const auto all_sizes = sizes(job.pes());
        for (const char* name : algorithms) {
            const npu::BarrierChoice choice = npu::BarrierChoice::parse(name).value();
            for (const int pes : all_sizes) {
                progress.line().begin_step(fmt::format("timing {} on {} PEs", name, pes), table.rows.size(),
                                           std::size(algorithms) * all_sizes.size());
                auto time = latency(job, state.value().get(), choice, pes);
                if (!time.ok()) return time.status().within(fmt::format("{} on {} PEs", name, pes));
                if (job.pe() != 0) continue;
                table.rows.push_back({name, pes, time.value(), virtual_latency(choice, pes), traffic_of(choice, pes)});
            }
        }
        return table;
    }

    // Seconds of the slowest member. Collective.
    [[nodiscard]] Result<double> latency(const Job& job, npu::BarrierState* state, const npu::BarrierChoice& choice,
                                         int pes) const {
        std::vector<double> times;
        for (int round = 0; round <= rounds_; ++round) {
            // Barriers of other team sizes have changed it.
            *state = {};
            npushmem_barrier_all();
            const auto begin = Clock::now();
            if (job.pe() < pes) {
                npu::Stream& stream = npu::device().default_stream();
                Status status = npu::launch(stream, blocks(), [=, calls = calls_](npu::Core& core) {
                    for (int i = 0; i < calls; ++i) npu::sync_with_choice(core, choice, {0, 1, pes}, state);
                });
                if (status.ok()) status = stream.synchronize();
                if (!status.ok()) return status;
            }
            const auto all = job.allgather({job.pe() < pes ? seconds_since(begin) / calls_ : 0});
            if (!all.ok()) return all.status();
            // The first warms up.
            if (round > 0) times.push_back(std::ranges::max(all.value()));
        }
        std::ranges::nth_element(times, times.begin() + rounds_ / 2);
        return times[static_cast<std::size_t>(rounds_ / 2)];
    }

    // Counts the signals and polls that leave the PE, per member and barrier, in a checked job.
    [[nodiscard]] BarrierTraffic traffic_of(const npu::BarrierChoice& choice, int pes) const {
        const npu::CheckedJobConfig config = small_job(pes);
        auto job = npu::CheckedJob::create(config);
        if (!job.ok()) return {};
        auto* state = job.value()->allocate<npu::BarrierState>(1);
        const npu::CheckReport report = job.value()->run(config.device.blocks, [&](npu::Core& core) {
            npu::sync_with_choice(core, choice, {0, 1, pes}, job.value()->at(core.my_pe(), state));
        });
        const auto members = static_cast<std::uint64_t>(pes);
        return {report.remote_signals / members, report.remote_waits / members};
    }

    int calls_ = 1000;
    int rounds_ = 5;
    int pes_ = 0;  // 0: all sizes
    int cores_ = 8;
    std::string json_;
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
