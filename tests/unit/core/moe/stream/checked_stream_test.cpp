// SPDX-License-Identifier: BSD-3-Clause
// The kernel of mode stream in checked mode: no finding under any schedule, and every row in its slot.
#include <gmock/gmock.h>

#include <cstring>

#include "core/moe/stream/row_order.hpp"
#include "core/moe/stream/stream_combine.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "tests/unit/core/moe/routing_cases.hpp"

namespace npushmem::moe {
namespace {

using npu::CheckedJob;
using npu::CheckReport;
using npu::Schedule;

constexpr CaseShape shape{2, 4, 2, 6, 3, 0.2};

// The test checks only the transfer of rows: no rank has tokens to reduce.
class CheckedStream {
public:
    // `chunk`: tokens of one; shape.tokens: mode stream.
    CheckedStream(const char* schedule, Bytes row, Rows ring_rows, std::uint64_t chunk, RingPlace place)
        : chunk_(chunk),
          chunks_((static_cast<std::uint64_t>(shape.tokens) + chunk - 1) / chunk),
          layout_(shape.ranks, chunk_slots(chunk), row),
          rings_(shape.ranks, row_ring_shape(row, layout_.slots(), ring_rows), place) {
        npu::CheckedJobConfig config{
            .pes = shape.ranks, .heap_bytes = 1 << 20, .schedule = Schedule::parse(schedule).value()};
        config.device.blocks = 1;
        config.device.launch_timeout = std::chrono::seconds(60);
        job_ = CheckedJob::create(config).value();
        region_ = job_->allocate<std::byte>(layout_.total().value());
        ring_memory_ = job_->allocate<std::byte>(rings_.total().value());
        const ExpertPlacement placement(shape.experts, shape.ranks);
        for (int pe = 0; pe < shape.ranks; ++pe) {
            plans_.push_back(build_combine_plan(views_of(routing_), placement, pe).value());
            orders_.push_back(
                row_order(routing_.expert_ids[static_cast<std::size_t>(pe)], placement, chunk_slots(chunk), chunks_));
        }
        x_ = job_->allocate<std::byte>(bytes_of(Rows{64}, row).value());
        for (int pe = 0; pe < shape.ranks; ++pe) fill(pe);
    }

    CheckReport run(std::uint64_t epoch) {
        npu::LaunchConfig launch(1);
        launch.name = "stream";
        return job_->run(launch, [&](npu::Core& core) { moe_combine_stream(core, work_of(core.my_pe(), epoch)); });
    }

    // Returns "" or the first wrong slot among those of the last chunk.
    std::string wrong(std::uint64_t epoch) {
        for (int pe = 0; pe < shape.ranks; ++pe) {
            const auto& ids = routing_.expert_ids[static_cast<std::size_t>(pe)];
            const auto first = static_cast<std::uint32_t>((chunks_ - 1) * layout_.slots().value());
            for (std::uint32_t slot = first; slot < ids.size(); ++slot) {
                if (ids[slot] < 0) continue;
                const std::byte* row = job_->at(pe, region_) + layout_.slot(epoch, slot).value();
                for (std::size_t i = 0; i < layout_.row_bytes().value(); ++i) {
                    if (row[i] != content(pe, slot, i))
                        return "PE " + std::to_string(pe) + ", slot " + std::to_string(slot);
                }
            }
        }
        return "";
    }

private:
    static Rows chunk_slots(std::uint64_t tokens) { return rows_of(Tokens{tokens}, shape.top_k); }
    static std::byte content(int rank, std::uint32_t slot, std::size_t at) {
        return static_cast<std::byte>(rank * 101 + static_cast<int>(slot) * 7 + static_cast<int>(at) * 3 + 1);
    }

    void fill(int pe) {
        const CombinePlan& plan = plans_[static_cast<std::size_t>(pe)];
        for (std::int32_t expert = 0; expert < plan.local_experts; ++expert) {
            for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
                const Fragment f = plan.fragment(expert, rank);
                for (std::uint64_t row = f.first.value(); row < f.first.value() + f.count.value(); ++row) {
                    std::byte* to = job_->at(pe, x_) + bytes_of(Rows{row}, layout_.row_bytes()).value();
                    for (std::size_t i = 0; i < layout_.row_bytes().value(); ++i)
                        to[i] = content(rank, plan.slots[row], i);
                }
            }
        }
    }

    StreamCombine work_of(int pe, std::uint64_t epoch) {
        StreamCombine work;
        work.send = send_from(plans_[static_cast<std::size_t>(pe)], layout_);
        work.send.x = job_->at(pe, x_);
        work.send.region = job_->at(pe, region_);
        work.send.epoch = epoch;
        work.rings = {job_->at(pe, ring_memory_), rings_};
        work.slots = orders_[static_cast<std::size_t>(pe)].slots.data();
        work.first = orders_[static_cast<std::size_t>(pe)].first.data();
        work.receive.top_k = shape.top_k;
        work.chunk = Tokens{chunk_};
        work.chunks = chunks_;
        return work;
    }

    Routing routing_ = random_routing(shape);
    std::uint64_t chunk_;
    std::uint64_t chunks_;
    SlotLayout layout_;
    RingLayout rings_;
    std::unique_ptr<CheckedJob> job_;
    std::byte* region_ = nullptr;
    std::byte* ring_memory_ = nullptr;
    std::byte* x_ = nullptr;
    std::vector<CombinePlan> plans_;
    std::vector<RowOrder> orders_;
};

TEST(CheckedStream, IsCleanUnderEverySchedule) {
    for (const char* schedule : {"eager", "lazy", "random:1", "random:2", "random:3"}) {
        for (const auto& [row, ring_rows, chunk] :
             {std::tuple{40, 1, shape.tokens}, {40, 3, shape.tokens}, {64, 2, 6}, {40, 1, 1}, {40, 3, 2}, {64, 4, 4}}) {
            for (const RingPlace place : {RingPlace::receiver, RingPlace::sender}) {
                CheckedStream stream(schedule, Bytes{static_cast<std::uint64_t>(row)},
                                     Rows{static_cast<std::uint64_t>(ring_rows)}, static_cast<std::uint64_t>(chunk),
                                     place);
                for (const std::uint64_t epoch : {1, 2, 3}) {
                    const CheckReport report = stream.run(epoch);
                    ASSERT_TRUE(report.status.ok() && report.findings.empty()) << report.text();
                    ASSERT_EQ(stream.wrong(epoch), "") << schedule;
                }
            }
        }
    }
}

}  // namespace
}  // namespace npushmem::moe
