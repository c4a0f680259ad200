// SPDX-License-Identifier: BSD-3-Clause
#include "bench/moe/layer_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "bench/moe/dispatch_in_job.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/narrow_rows.hpp"
#include "core/moe/direct/combine_receiver.hpp"
#include "core/moe/direct/combine_sender.hpp"
#include "core/moe/dispatch/dispatch_kernel.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::moe {

namespace {

constexpr std::uint64_t epoch = 1;

Rows max_slots(const Routing& routing) { return Rows{std::max<std::uint64_t>(max_choices(routing), 1)}; }

Result<std::vector<CombinePlan>> plans_of(const Routing& routing) {
    std::vector<RankRouting> views;
    for (std::size_t rank = 0; rank < routing.expert_ids.size(); ++rank) {
        views.push_back({routing.expert_ids[rank], routing.weights[rank]});
    }
    const ExpertPlacement placement(routing.experts, routing.ranks());
    std::vector<CombinePlan> plans;
    for (std::int32_t rank = 0; rank < routing.ranks(); ++rank) {
        auto plan = build_combine_plan(views, placement, rank);
        if (!plan.ok()) return plan.status();
        plans.push_back(std::move(plan).value());
    }
    return plans;
}

Rows max_rows(const std::vector<CombinePlan>& plans) {
    Rows most;
    for (const CombinePlan& plan : plans) most = std::max(most, plan.rows);
    return most;
}

// Never written: pages that are not read cost nothing.
Result<std::unique_ptr<std::byte[]>> make_rows(Rows rows, Bytes row) {
    constexpr std::uint64_t most = std::numeric_limits<std::ptrdiff_t>::max();
    const bool fits = row.value() == 0 || rows.value() <= most / row.value();
    std::unique_ptr<std::byte[]> memory(fits ? new (std::nothrow) std::byte[bytes_of(rows, row).value()] : nullptr);
    if (memory == nullptr) {
        return Status{Code::memory, fmt::format("estimate: no room for the {} rows of {} bytes that a rank sends; use "
                                                "fewer tokens",
                                                rows.value(), row.value())};
    }
    return memory;
}

Bytes returned_row(const EstimateRows& rows) {
    return bytes_of(Elements{static_cast<std::uint64_t>(rows.hidden)}, size_of(rows.type));
}

Bytes dispatched_row(const EstimateRows& rows) {
    return rows.quantized ? NarrowLayout(static_cast<std::size_t>(rows.hidden), 0).row() : returned_row(rows);
}

npu::CheckedJobConfig job_config(Bytes heap, int ranks, const EstimateCores& cores) {
    constexpr std::uint64_t for_lines = 1 << 16;  // of 64 bytes, in which each object begins
    npu::CheckedJobConfig config{.pes = ranks, .heap_bytes = heap.value() + for_lines, .check = false};
    config.schedule.kind = npu::Schedule::Kind::eager;
    config.device.blocks = cores.blocks;
    config.device.vector_cores = cores.vector_cores;
    return config;
}

// What the two calls have in common: the job, and its launches in virtual time. Tables and slots are in the job's
// memory, aligned to a cache line, so that the number of lines that a core loads does not depend on the host.
class EstimatedJob {
public:
    static Result<std::unique_ptr<EstimatedJob>> create(npu::VirtualTime& time, const Routing& routing, Bytes heap,
                                                        const EstimateCores& cores) {
        auto job = npu::CheckedJob::create(job_config(heap, routing.ranks(), cores));
        if (!job.ok()) return job.status();
        return std::unique_ptr<EstimatedJob>(new EstimatedJob(time, cores, std::move(job).value()));
    }

    [[nodiscard]] npu::CheckedJob& job() const { return *job_; }
    Status run(const char* name, const npu::CheckedJob::Kernel& kernel) {
        npu::LaunchConfig launch(cores_.blocks);
        launch.name = name;
        launch.hooks = time_.hooks();
        return job_->run(launch, kernel).status;
    }

private:
    EstimatedJob(npu::VirtualTime& time, const EstimateCores& cores, std::unique_ptr<npu::CheckedJob> job)
        : time_(time), cores_(cores), job_(std::move(job)) {}

    npu::VirtualTime& time_;
    EstimateCores cores_;
    std::unique_ptr<npu::CheckedJob> job_;
};

DispatchLayout layout_of(const Routing& routing, const EstimateRows& rows, Rows most) {
    const ExpertPlacement placement(routing.experts, routing.ranks());
    if (!rows.fixed_slots) return {routing.ranks(), routing.experts, most, dispatched_row(rows)};
    const auto tokens = static_cast<std::int64_t>(max_slots(routing).value()) / routing.top_k;
    const ExpertRows slots = ExpertRows::fixed(1, std::max<std::int64_t>(tokens, 1));
    const auto local = static_cast<std::uint64_t>(placement.local_experts(0));
    return {routing.ranks(),
            routing.experts,
            Rows{local * slots.next_fixed(0, routing.ranks())},
            dispatched_row(rows),
            0,
            slots};
}

// The arguments of the combine kernels on each rank.
class EstimatedCombine {
public:
    EstimatedCombine(npu::CheckedJob& job, const Routing& routing, const EstimateRows& rows,
                     const std::vector<CombinePlan>& plans, const SlotLayout& layout)
        : job_(job), routing_(routing), rows_(rows), plans_(plans), layout_(layout) {
        region_ = job.allocate<std::byte>(layout.total().value());
        slots_ = job.allocate<std::uint32_t>(max_rows(plans).value());
        for (int pe = 0; pe < routing.ranks(); ++pe)
            std::ranges::copy(plans[static_cast<std::size_t>(pe)].slots, job.at(pe, slots_));
    }

    [[nodiscard]] CombineSend send(int pe, const std::byte* x) const {
        CombineSend send = send_from(plans_[static_cast<std::size_t>(pe)], layout_);
        send.x = x;
        send.slots = job_.at(pe, slots_);
        send.region = job_.at(pe, region_);
        send.epoch = epoch;
        send.route = CopyRoute::staged;
        return send;
    }

    [[nodiscard]] CombineReceive receive(int pe, std::byte* out) const {
        const RankRouting own = routing_.rank(static_cast<std::size_t>(pe));
        CombineReceive receive;
        receive.region = job_.at(pe, region_);
        receive.layout = layout_;
        receive.epoch = epoch;
        receive.num_ranks = routing_.ranks();
        receive.experts = own.experts.data();
        receive.weights = own.weights.data();
        receive.tokens = Tokens{own.tokens(routing_.top_k)};
        receive.top_k = routing_.top_k;
        receive.out = out;
        receive.out_row = layout_.row_bytes();
        receive.reduction = {nullptr, {static_cast<std::size_t>(rows_.hidden), 0}, true, rows_.type, rows_.type};
        return receive;
    }

private:
    npu::CheckedJob& job_;
    const Routing& routing_;
    const EstimateRows& rows_;
    const std::vector<CombinePlan>& plans_;
    SlotLayout layout_;
    std::byte* region_;
    std::uint32_t* slots_;
};

using Link = npu::VirtualReport::Link;

// Of `all` links; `counts` holds the used ones.
template <class Counts>
LinksBusy busy_of(const npu::VirtualReport& report, std::size_t all, const Counts& counts) {
    if (all == 0) return {};
    LinksBusy busy{std::numeric_limits<double>::max(), 0, 0, all};
    std::size_t used = 0;
    for (const Link& link : report.links) {
        if (!counts(link)) continue;
        ++used;
        busy.min = std::min(busy.min, link.busy);
        busy.mean += link.busy;
        busy.max = std::max(busy.max, link.busy);
    }
    if (used < all) busy.min = 0;
    busy.mean /= static_cast<double>(all);
    return busy;
}

}  // namespace

Status estimate_dispatch(npu::VirtualTime& time, const Routing& routing, const EstimateRows& rows,
                         const EstimateCores& cores) {
    auto plans = plans_of(routing);
    if (!plans.ok()) return plans.status();
    const DispatchLayout layout = layout_of(routing, rows, max_rows(plans.value()));
    auto job = EstimatedJob::create(time, routing, DispatchInJob::size(routing, layout), cores);
    if (!job.ok()) return job.status();
    auto in = make_rows(max_slots(routing), dispatched_row(rows));
    if (!in.ok()) return in.status();
    const DispatchInJob dispatch(job.value()->job(), routing, layout);
    const auto run = [&](const char* name, void (*kernel)(npu::Core&, const DispatchWork&)) {
        return job.value()->run(name, [&](npu::Core& core) {
            kernel(core, dispatch.work_of(core.my_pe(), in.value().get(), epoch, CopyRoute::staged));
        });
    };
    if (!rows.fixed_slots) return run("moe_dispatch", moe_dispatch);
    Status sent = run("moe_dispatch_sort_and_send_fixed", moe_dispatch_sort_and_send_fixed);
    return sent.ok() ? run("moe_dispatch_receive_fixed", moe_dispatch_receive_fixed) : sent;
}

Result<npu::VirtualReport> estimate_combine(npu::VirtualTime& time, const Routing& routing, const EstimateRows& rows,
                                            const EstimateCores& cores) {
    const Bytes row = returned_row(rows);
    const SlotLayout layout(routing.ranks(), max_slots(routing), row);
    auto plans = plans_of(routing);
    if (!plans.ok()) return plans.status();
    const Rows most = max_rows(plans.value());
    auto job = EstimatedJob::create(time, routing, layout.total() + Bytes{most.value() * sizeof(std::uint32_t)}, cores);
    if (!job.ok()) return job.status();
    auto x = make_rows(most, row);
    auto out = make_rows(max_slots(routing), row);
    for (const auto* memory : {&x, &out})
        if (!memory->ok()) return memory->status();
    const EstimatedCombine combine(job.value()->job(), routing, rows, plans.value(), layout);
    Status sent = job.value()->run("moe_combine_direct_sender", [&](npu::Core& core) {
        moe_combine_direct_sender(core, combine.send(core.my_pe(), x.value().get()));
    });
    if (!sent.ok()) return sent;
    npu::VirtualReport report = time.report();
    Status received = job.value()->run("moe_combine_receiver", [&](npu::Core& core) {
        moe_combine_receiver(core, combine.receive(core.my_pe(), out.value().get()));
    });
    if (!received.ok()) return received;
    return report;
}

LinksBusy links_busy(const npu::VirtualReport& report, int ranks, int group) {
    std::size_t all = 0;
    for (int first = 0; first < ranks; first += group) {
        const auto members = static_cast<std::size_t>(std::min(group, ranks - first));
        all += members * (members - 1);
    }
    return busy_of(report, all, [](const Link& link) { return link.from >= 0 && link.to >= 0; });
}

LinksBusy ports_busy(const npu::VirtualReport& report, int ranks, int group) {
    const std::size_t all = ranks > group ? 2 * static_cast<std::size_t>(ranks) : 0;
    return busy_of(report, all, [](const Link& link) { return link.from < 0 || link.to < 0; });
}

}  // namespace npushmem::moe
