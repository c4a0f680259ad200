// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the dispatch in checked mode, with all data in watched memory: no finding and correct results under
// any schedule; and a finding if a kernel reads rows without waiting for them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <span>

#include "bench/moe/dispatch_in_job.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/dispatch/dispatch_kernel.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "tests/unit/core/moe/routing_cases.hpp"

namespace npushmem::moe {
namespace {

using npu::CheckedJob;
using npu::CheckReport;
using npu::Hazard;
using npu::Schedule;

constexpr CaseShape shape{2, 4, 2, 6, 3, 0.2};
constexpr std::size_t choices = static_cast<std::size_t>(shape.tokens * shape.top_k);

class CheckedDispatch {
public:
    CheckedDispatch(const char* schedule, Bytes row, CopyRoute route, ExpertRows expert_rows = ExpertRows())
        : layout_(shape.ranks, shape.experts, Rows{64}, row, 0, expert_rows), route_(route) {
        npu::CheckedJobConfig config{
            .pes = shape.ranks, .heap_bytes = 1 << 20, .schedule = Schedule::parse(schedule).value()};
        config.device.blocks = 1;
        config.device.launch_timeout = std::chrono::seconds(60);
        job_ = CheckedJob::create(config).value();
        dispatch_.emplace(*job_, routing_, layout_);
        in_ = job_->allocate<std::byte>(bytes_of(Rows{static_cast<std::uint64_t>(shape.tokens)}, row).value());
        for (int pe = 0; pe < shape.ranks; ++pe) fill(pe);
    }

    CheckReport run(std::uint64_t epoch) {
        return run_kernel([&](npu::Core& core) {
            const DispatchWork work = work_of(core.my_pe(), epoch);
            if (!layout_.expert_rows().is_fixed()) return moe_dispatch(core, work);
            moe_dispatch_sort_and_send_fixed(core, work);
            moe_dispatch_receive_fixed(core, work);
        });
    }
    CheckReport run_kernel(const CheckedJob::Kernel& kernel) {
        npu::LaunchConfig launch(1);
        launch.name = "dispatch";
        return job_->run(launch, kernel);
    }

    DispatchWork work_of(int pe, std::uint64_t epoch) {
        return dispatch_->work_of(pe, job_->at(pe, in_), epoch, route_);
    }

    // Returns "" or the first difference to the plain reference.
    std::string wrong(std::uint64_t epoch) {
        for (int pe = 0; pe < shape.ranks; ++pe) {
            const DispatchWork work = work_of(pe, epoch);
            CombinePlan plan = build_combine_plan(views_of(routing_), work.placement, pe).value();
            if (layout_.expert_rows().is_fixed()) plan = with_gaps(plan);
            if (*work.tables.accepted != 1) return fmt::format("PE {}: not accepted", pe);
            if (!std::ranges::equal(plan.offset_table, std::span(work.tables.offset_table, entries)) ||
                !std::ranges::equal(plan.length_table, std::span(work.tables.length_table, entries)))
                return fmt::format("PE {}: tables", pe);
            if (std::string text = wrong_row(work, plan); !text.empty()) return fmt::format("PE {}: {}", pe, text);
        }
        return "";
    }

private:
    static constexpr std::size_t entries = static_cast<std::size_t>(shape.experts / shape.ranks * shape.ranks);

    static std::byte content(int rank, std::uint32_t token, std::size_t at) {
        return static_cast<std::byte>(rank * 101 + static_cast<int>(token) * 7 + static_cast<int>(at) * 3 + 1);
    }

    // The fragments at their fixed places.
    [[nodiscard]] CombinePlan with_gaps(const CombinePlan& packed) const {
        CombinePlan plan = packed;
        plan.slots.assign(layout_.capacity().value(), no_slot);
        for (std::int32_t entry = 0; entry < plan.local_experts * plan.ranks; ++entry) {
            const Fragment f = packed.fragment(entry / plan.ranks, entry % plan.ranks);
            const std::uint64_t at = layout_.expert_rows().next(layout_.expert_rows().of_rank(plan.ranks)) *
                                         static_cast<std::uint64_t>(entry / plan.ranks) +
                                     layout_.expert_rows().of_rank(entry % plan.ranks);
            plan.offset_table[static_cast<std::size_t>(entry)] = static_cast<std::int32_t>(at);
            std::copy_n(packed.slots.begin() + static_cast<std::ptrdiff_t>(f.first.value()), f.count.value(),
                        plan.slots.begin() + static_cast<std::ptrdiff_t>(at));
        }
        return plan;
    }

    void fill(int pe) {
        const std::size_t row = layout_.row_bytes().value();
        for (std::uint32_t token = 0; token < static_cast<std::uint32_t>(shape.tokens); ++token) {
            for (std::size_t i = 0; i < row; ++i) job_->at(pe, in_)[token * row + i] = content(pe, token, i);
        }
    }

    std::string wrong_row(const DispatchWork& work, const CombinePlan& plan) {
        const std::uint32_t* slots = work.slots();
        const std::size_t row = layout_.row_bytes().value();
        for (std::int32_t entry = 0; entry < plan.local_experts * plan.ranks; ++entry) {
            const Fragment f = plan.fragment(entry / plan.ranks, entry % plan.ranks);
            for (std::uint64_t at = f.first.value(); at < f.first.value() + f.count.value(); ++at) {
                if (slots[at] != plan.slots[at]) return fmt::format("slot of row {}", at);
                const std::byte* seen = work.x() + at * row;
                for (std::size_t i = 0; i < row; ++i) {
                    if (seen[i] != content(entry % plan.ranks, plan.slots[at] / shape.top_k, i))
                        return fmt::format("row {}, byte {}", at, i);
                }
            }
        }
        return "";
    }

    Routing routing_ = random_routing(shape);
    DispatchLayout layout_;
    CopyRoute route_;
    std::unique_ptr<CheckedJob> job_;
    std::optional<DispatchInJob> dispatch_;
    std::byte* in_ = nullptr;
};

TEST(CheckedDispatch, IsCleanUnderEverySchedule) {
    for (const char* schedule : {"eager", "lazy", "random:1", "random:2", "random:3", "explore"}) {
        for (const auto& [row, route] :
             {std::pair{40, CopyRoute::direct}, {40, CopyRoute::staged}, {64, CopyRoute::staged}}) {
            CheckedDispatch dispatch(schedule, Bytes{static_cast<std::uint64_t>(row)}, route);
            for (const std::uint64_t epoch : {1, 2, 3}) {
                const CheckReport report = dispatch.run(epoch);
                ASSERT_TRUE(report.status.ok() && report.findings.empty() && report.complete) << report.text();
                ASSERT_EQ(dispatch.wrong(epoch), "") << schedule;
            }
        }
    }
}

TEST(CheckedDispatch, WithFixedSlotsIsCleanUnderEverySchedule) {
    for (const char* schedule : {"eager", "lazy", "random:1", "explore"}) {
        for (const std::int32_t alignment : {1, 5}) {
            CheckedDispatch dispatch(schedule, Bytes{64}, CopyRoute::staged, ExpertRows::fixed(alignment, 12));
            for (const std::uint64_t epoch : {1, 2, 3}) {
                const CheckReport report = dispatch.run(epoch);
                ASSERT_TRUE(report.status.ok() && report.findings.empty() && report.complete) << report.text();
                ASSERT_EQ(dispatch.wrong(epoch), "") << schedule << ", alignment " << alignment;
            }
        }
    }
}

// One PE copies the first row of x somewhere, with and without having waited for the rows.
CheckReport read_x(bool waits) {
    CheckedDispatch dispatch("lazy", Bytes{64}, CopyRoute::direct);
    return dispatch.run_kernel([&, waits](npu::Core& core) {
        const DispatchWork work = dispatch.work_of(core.my_pe(), 1);
        moe_dispatch_publish_counts(core, work);
        moe_dispatch_tables(core, work);
        moe_dispatch_rows(core, work);
        if (waits) moe_dispatch_await(core, work);
        core.core_barrier();
        if (core.my_pe() != 1 || core.index() != 0) return;
        const auto buffer = core.ub_alloc<std::byte>(64);
        core.data_copy(buffer, npu::gm<const std::byte>(work.region + work.layout.x().value(), 64), 64);
    });
}

TEST(CheckedDispatch, IsCleanOnlyIfTheKernelWaitsForTheRows) {
    const CheckReport right = read_x(true);
    EXPECT_TRUE(right.status.ok() && right.findings.empty()) << right.text();
    const CheckReport wrong = read_x(false);
    EXPECT_TRUE(std::ranges::any_of(wrong.findings, [](const npu::Finding& finding) {
        return finding.hazard == Hazard::dma_race;
    })) << wrong.text();
}

}  // namespace
}  // namespace npushmem::moe
