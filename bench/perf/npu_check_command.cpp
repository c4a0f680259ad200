// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf npu-check: measures the cost of checking kernels, and the number of explored schedules per second.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <vector>

#include "bench/engine/progress_line.hpp"
#include "bench/engine/statistics.hpp"
#include "bench/moe/routing_generator.hpp"
#include "bench/perf/subcommand.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/reduce.hpp"
#include "core/moe/common/routing.hpp"
#include "core/moe/direct/combine_receiver.hpp"
#include "core/moe/direct/combine_sender.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/npu.hpp"

namespace npushmem::perf {

struct CheckedCombineShape {
    int pes = 2;
    int experts = 32;
    int top_k = 8;
    int tokens = 32;  // of each PE
    std::uint64_t columns = 7168;
};

// A combine in mode direct that copies its rows through the unified buffer. All its PEs are in this process and thread.
class CheckedCombine {
public:
    static Result<std::unique_ptr<CheckedCombine>> create(const CheckedCombineShape& shape, bool check);

    // Runs one call on all PEs. The report has its time and its findings.
    npu::CheckReport run();

private:
    CheckedCombine(const CheckedCombineShape& shape, moe::Routing routing, std::unique_ptr<npu::CheckedJob> job);

    [[nodiscard]] static moe::SlotLayout layout_of(const CheckedCombineShape& shape);
    [[nodiscard]] static std::size_t heap_bytes(const CheckedCombineShape& shape);
    Status plan_all();
    [[nodiscard]] moe::CombineSend send_of(int pe) const;
    [[nodiscard]] moe::CombineReceive receive_of(int pe) const;

    CheckedCombineShape shape_;
    moe::Routing routing_;
    std::unique_ptr<npu::CheckedJob> job_;
    moe::SlotLayout layout_;
    std::vector<moe::CombinePlan> plans_;
    std::byte* region_ = nullptr;
    std::byte* x_ = nullptr;
    std::byte* out_ = nullptr;
    std::uint64_t epoch_ = 0;
};

namespace {

moe::Bytes row_of(const CheckedCombineShape& shape) { return moe::Bytes{shape.columns * 2}; }

// x of one PE holds at most every row of all PEs.
std::size_t max_rows(const CheckedCombineShape& shape) {
    return static_cast<std::size_t>(shape.pes) * static_cast<std::size_t>(shape.tokens) *
           static_cast<std::size_t>(shape.top_k);
}

}  // namespace

moe::SlotLayout CheckedCombine::layout_of(const CheckedCombineShape& shape) {
    const auto slots =
        moe::rows_of(moe::Tokens{static_cast<std::uint64_t>(shape.tokens)}, static_cast<std::uint32_t>(shape.top_k));
    return {shape.pes, slots, row_of(shape)};
}

std::size_t CheckedCombine::heap_bytes(const CheckedCombineShape& shape) {
    const std::size_t row = row_of(shape).value();
    return layout_of(shape).total().value() + (max_rows(shape) + static_cast<std::size_t>(shape.tokens)) * row + 4096;
}

Result<std::unique_ptr<CheckedCombine>> CheckedCombine::create(const CheckedCombineShape& shape, bool check) {
    auto routing = moe::generate_routing(
        {.experts = shape.experts, .top_k = shape.top_k, .ranks = shape.pes, .tokens = shape.tokens, .zipf = 1});
    if (!routing.ok()) return routing.status();
    auto job = npu::CheckedJob::create({.pes = shape.pes, .heap_bytes = heap_bytes(shape), .check = check});
    if (!job.ok()) return job.status();
    std::unique_ptr<CheckedCombine> combine(
        new CheckedCombine(shape, std::move(routing).value(), std::move(job).value()));
    if (Status s = combine->plan_all(); !s.ok()) return s;
    return combine;
}

CheckedCombine::CheckedCombine(const CheckedCombineShape& shape, moe::Routing routing,
                               std::unique_ptr<npu::CheckedJob> job)
    : shape_(shape), routing_(std::move(routing)), job_(std::move(job)), layout_(layout_of(shape)) {
    const std::size_t row = row_of(shape).value();
    region_ = job_->allocate<std::byte>(layout_.total().value());
    x_ = job_->allocate<std::byte>(max_rows(shape) * row);
    out_ = job_->allocate<std::byte>(static_cast<std::size_t>(shape.tokens) * row);
}

Status CheckedCombine::plan_all() {
    std::vector<moe::RankRouting> ranks;
    for (std::size_t pe = 0; pe < static_cast<std::size_t>(shape_.pes); ++pe) ranks.push_back(routing_.rank(pe));
    for (int pe = 0; pe < shape_.pes; ++pe) {
        auto plan = moe::build_combine_plan(ranks, {shape_.experts, shape_.pes}, pe);
        if (!plan.ok()) return plan.status();
        plans_.push_back(std::move(plan).value());
    }
    return {};
}

moe::CombineSend CheckedCombine::send_of(int pe) const {
    moe::CombineSend send = moe::send_from(plans_[static_cast<std::size_t>(pe)], layout_);
    send.x = job_->at(pe, x_);
    send.region = job_->at(pe, region_);
    send.epoch = epoch_;
    send.route = moe::CopyRoute::staged;
    return send;
}

moe::CombineReceive CheckedCombine::receive_of(int pe) const {
    const moe::RankRouting routing = routing_.rank(static_cast<std::size_t>(pe));
    moe::CombineReceive receive;
    receive.region = job_->at(pe, region_);
    receive.layout = layout_;
    receive.epoch = epoch_;
    receive.num_ranks = shape_.pes;
    receive.experts = routing.experts.data();
    receive.weights = routing.weights.data();
    receive.tokens = moe::Tokens{static_cast<std::uint64_t>(shape_.tokens)};
    receive.top_k = shape_.top_k;
    receive.out = job_->at(pe, out_);
    receive.out_row = row_of(shape_);
    receive.reduction = {moe::best_reduce(moe::ElementType::bfloat16, moe::ElementType::bfloat16),
                         {static_cast<std::size_t>(shape_.columns), 0}};
    return receive;
}

npu::CheckReport CheckedCombine::run() {
    ++epoch_;
    npu::LaunchConfig launch(1);
    launch.name = "combine";
    return job_->run(launch, [&](npu::Core& core) {
        moe::moe_combine_direct_sender(core, send_of(core.my_pe()));
        moe::moe_combine_receiver(core, receive_of(core.my_pe()));
    });
}

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
        app->add_option("--rounds", rounds_, "Calls of each kind, alternating; the median is reported")
            ->check(CLI::Range(1, 1000))
            ->capture_default_str();
        app->add_option("--schedules", schedules_, "Maximum number of schedules to explore")
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
        bench::TerminalProgress progress(true);
        for (int round = 0; round <= rounds_; ++round) {
            progress.line().begin_step("timing a combine, round", static_cast<std::size_t>(round),
                                       static_cast<std::size_t>(rounds_) + 1);
            if (Status s = time_one(*fast.value(), fast_seconds); !s.ok()) return s;
            if (Status s = time_one(*checked.value(), checked_seconds); !s.ok()) return s;
            if (round == 0) fast_seconds.clear(), checked_seconds.clear();
        }
        const double once = bench::summarise(std::move(fast_seconds)).median;
        const double watched = bench::summarise(std::move(checked_seconds)).median;
        return fmt::format(
            "combine of {} PEs in one process, {} tokens each, rows of {} bf16: fast {:.3f} ms, checked {:.3f} ms, "
            "{:.1f} times as long\n",
            shape_.pes, shape_.tokens, shape_.columns, once * 1e3, watched * 1e3, watched / once);
    }

    [[nodiscard]] Result<std::string> explored() const {
        constexpr int pes = 4;
        npu::CheckedJobConfig config{.pes = pes, .heap_bytes = 2 * sizeof(npu::BarrierState)};
        config.schedule = {.kind = npu::Schedule::Kind::explore, .max_schedules = schedules_};
        config.device.stack_bytes = 64 * 1024;
        auto job = npu::CheckedJob::create(config);
        if (!job.ok()) return job.status();
        auto* state = job.value()->allocate<npu::BarrierState>(1);
        const npu::CheckReport report = job.value()->run(1, [&](npu::Core& core) {
            // The second round begins while members still leave the first one.
            for (int round = 0; round < 2; ++round)
                npu::sync_v3(core, {0, 1, pes}, job.value()->at(core.my_pe(), state));
        });
        if (!report.clean()) return Status{Code::protocol, report.text()};
        return fmt::format(
            "exploration of two barriers v3 ({} PEs, 2 cores each): {}; {} schedules of {} steps on average, {} of "
            "them "
            "redundant, {:.0f} per second\n",
            pes, report.coverage, report.schedules, report.steps / report.schedules, report.redundant,
            static_cast<double>(report.schedules) / report.seconds);
    }

    CheckedCombineShape shape_;
    int rounds_ = 15;
    std::uint64_t schedules_ = 5000;
};

}  // namespace

std::unique_ptr<Subcommand> make_npu_check_command() { return std::make_unique<NpuCheckCommand>(); }

}  // namespace npushmem::perf
