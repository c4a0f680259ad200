// SPDX-License-Identifier: BSD-3-Clause
// The direct sender in the device's form, in checked mode: signalled rows have arrived, for any number of cores per
// destination.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/moe/common/combine_plan.hpp"
#include "core/moe/direct/combine_sender.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "tests/unit/core/moe/routing_cases.hpp"

namespace npushmem::moe {
namespace {

using npu::CheckedJob;
using npu::CheckReport;
using npu::Core;
using npu::Schedule;

constexpr CaseShape sender_shape{2, 4, 2, 6, 3, 0.2};
constexpr std::uint64_t epoch = 1;

class CheckedSender {
public:
    CheckedSender(const char* schedule, Bytes row, int cores)
        : layout_(sender_shape.ranks, rows_of(Tokens{sender_shape.tokens}, sender_shape.top_k), row) {
        npu::CheckedJobConfig config{
            .pes = sender_shape.ranks, .heap_bytes = 32 << 20, .schedule = Schedule::parse(schedule).value()};
        config.device.blocks = cores;
        config.device.vector_cores = 1;
        config.device.launch_timeout = std::chrono::seconds(60);
        job_ = CheckedJob::create(config).value();
        region_ = job_->allocate<std::byte>(layout_.total().value());
        x_ = job_->allocate<std::byte>(bytes_of(Rows{64}, row).value());
        for (int pe = 0; pe < sender_shape.ranks; ++pe) {
            plans_.push_back(
                build_combine_plan(views_of(routing_), ExpertPlacement(sender_shape.experts, sender_shape.ranks), pe)
                    .value());
            fill(pe);
        }
    }

    // Every core then reads the rows signalled to its PE; `awaited`: number of ranks it waits for.
    CheckReport run(int cores, int awaited = sender_shape.ranks) {
        return job_->run(npu::LaunchConfig(cores), [&, awaited](Core& core) {
            moe_combine_direct_sender(core, work_of(core.my_pe()));
            for (int rank = 0; rank < awaited; ++rank) {
                core.signal_wait_until(own_signal(work_of(core.my_pe()), rank), npu::Compare::equal, epoch, rank);
            }
            if (const std::string text = wrong_at(core); wrong_.empty()) wrong_ = text;
        });
    }
    [[nodiscard]] const std::string& wrong() const { return wrong_; }

private:
    static std::byte content(int rank, std::uint32_t slot) {
        return static_cast<std::byte>(rank * 101 + static_cast<int>(slot) * 7 + 1);
    }

    void fill(int pe) {
        const CombinePlan& plan = plans_[static_cast<std::size_t>(pe)];
        const std::uint64_t row = layout_.row_bytes().value();
        for (std::int32_t entry = 0; entry < plan.local_experts * plan.ranks; ++entry) {
            const std::int32_t rank = entry % plan.ranks;
            const Fragment f = plan.fragment(entry / plan.ranks, rank);
            for (std::uint64_t i = f.first.value(); i < f.first.value() + f.count.value(); ++i) {
                std::fill_n(job_->at(pe, x_) + i * row, row, content(rank, plan.slots[i]));
            }
        }
    }

    // A copied byte, with the 32-byte unit around it.
    static std::byte fetched(Core& core, const std::byte* region, std::uint64_t at) {
        const auto unit = core.ub_alloc<std::byte>(npu::ub_alignment);
        core.data_copy(unit, npu::gm(region + at / unit.size() * unit.size(), unit.size()), unit.size());
        core.set_flag<npu::Pipe::copy_in, npu::Pipe::scalar>(0);
        core.wait_flag<npu::Pipe::copy_in, npu::Pipe::scalar>(0);
        return core.get(unit, at % unit.size());
    }

    // The first and the last byte of each row.
    std::string wrong_at(Core& core) {
        const auto& ids = routing_.expert_ids[static_cast<std::size_t>(core.my_pe())];
        for (std::uint32_t slot = 0; slot < ids.size(); ++slot) {
            if (ids[slot] < 0) continue;
            const std::byte* region = job_->at(core.my_pe(), region_);
            const std::uint64_t first = layout_.slot(epoch, slot).value();
            for (const std::uint64_t at : {first, first + layout_.row_bytes().value() - 1}) {
                if (fetched(core, region, at) != content(core.my_pe(), slot)) return "slot " + std::to_string(slot);
            }
        }
        return "";
    }

    CombineSend work_of(int pe) {
        CombineSend send = send_from(plans_[static_cast<std::size_t>(pe)], layout_);
        send.x = job_->at(pe, x_);
        send.region = job_->at(pe, region_);
        send.epoch = epoch;
        send.route = CopyRoute::staged;
        return send;
    }

    Routing routing_ = random_routing(sender_shape);
    SlotLayout layout_;
    std::unique_ptr<CheckedJob> job_;
    std::byte* region_ = nullptr;
    std::byte* x_ = nullptr;
    std::vector<CombinePlan> plans_;
    std::string wrong_;
};

TEST(CheckedSender, IsCleanUnderEveryScheduleHoweverManyCoresShareADestination) {
    for (const char* schedule : {"eager", "lazy", "random:1", "random:2", "random:3"}) {
        for (const std::uint64_t row : {14, 64, 70000}) {
            for (const int cores : {1, 2, 4, 7}) {
                CheckedSender sender(schedule, Bytes{row}, cores);
                const CheckReport report = sender.run(cores);
                ASSERT_TRUE(report.status.ok() && report.findings.empty()) << report.text();
                ASSERT_EQ(sender.wrong(), "") << schedule << ", rows of " << row << ", " << cores << " cores";
            }
        }
    }
}

TEST(CheckedSender, ReportsRowsThatTheReceiverReadsWithoutAWait) {
    for (const int cores : {1, 4}) {
        CheckedSender sender("lazy", Bytes{64}, cores);
        const CheckReport report = sender.run(cores, 0);
        EXPECT_TRUE(std::ranges::any_of(report.findings, [](const npu::Finding& finding) {
            return finding.hazard == npu::Hazard::dma_race;
        })) << report.text();
    }
}

}  // namespace
}  // namespace npushmem::moe
