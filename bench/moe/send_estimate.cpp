// SPDX-License-Identifier: BSD-3-Clause
#include "bench/moe/send_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "core/moe/common/combine_plan.hpp"
#include "core/moe/direct/combine_sender.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::moe {

namespace {

constexpr std::uint64_t epoch = 1;

Rows max_slots(const Routing& routing) {
    std::size_t most = 1;
    for (const auto& ids : routing.expert_ids) most = std::max(most, ids.size());
    return Rows{most};
}

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
Result<std::unique_ptr<std::byte[]>> make_x(Rows rows, Bytes row) {
    constexpr std::uint64_t most = std::numeric_limits<std::ptrdiff_t>::max();
    const bool fits = row.value() == 0 || rows.value() <= most / row.value();
    std::unique_ptr<std::byte[]> x(fits ? new (std::nothrow) std::byte[bytes_of(rows, row).value()] : nullptr);
    if (x == nullptr) {
        return Status{Code::memory, fmt::format("estimate: no room for the {} rows of {} bytes that a rank sends; use "
                                                "fewer tokens",
                                                rows.value(), row.value())};
    }
    return x;
}

// In the job's memory, aligned to a cache line, so that the number of lines that a core loads does not depend on the
// host.
std::uint32_t* place_slots(npu::CheckedJob& job, const std::vector<CombinePlan>& plans) {
    auto* slots = job.allocate<std::uint32_t>(max_rows(plans).value());
    for (int pe = 0; pe < job.pes(); ++pe) {
        const auto& from = plans[static_cast<std::size_t>(pe)].slots;
        if (!from.empty()) std::memcpy(job.at(pe, slots), from.data(), from.size() * sizeof from.front());
    }
    return slots;
}

CombineSend send_of(const CombinePlan& plan, const SlotLayout& layout, const std::byte* x, const std::uint32_t* slots,
                    std::byte* region) {
    CombineSend send = send_from(plan, layout);
    send.x = x;
    send.slots = slots;
    send.region = region;
    send.epoch = epoch;
    send.route = CopyRoute::staged;
    return send;
}

npu::CheckedJobConfig job_config(const SlotLayout& layout, Rows most, int ranks, const EstimateCores& cores) {
    const std::uint64_t bytes = layout.total().value() + most.value() * sizeof(std::uint32_t) + 4096;
    npu::CheckedJobConfig config{.pes = ranks, .heap_bytes = bytes, .check = false};
    config.schedule.kind = npu::Schedule::Kind::eager;
    config.device.blocks = cores.blocks;
    config.device.vector_cores = cores.vector_cores;
    return config;
}

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

Status estimate_send(npu::VirtualTime& time, const Routing& routing, Bytes row, const EstimateCores& cores) {
    const SlotLayout layout(routing.ranks(), max_slots(routing), row);
    auto plans = plans_of(routing);
    if (!plans.ok()) return plans.status();
    const Rows most = max_rows(plans.value());
    auto job = npu::CheckedJob::create(job_config(layout, most, routing.ranks(), cores));
    if (!job.ok()) return job.status();
    auto x = make_x(most, row);
    if (!x.ok()) return x.status();
    auto* region = job.value()->allocate<std::byte>(layout.total().value());
    const auto* slots = place_slots(*job.value(), plans.value());
    npu::LaunchConfig launch(cores.blocks);
    launch.name = "moe_combine_direct_sender";
    launch.hooks = time.hooks();
    return job.value()
        ->run(launch,
              [&](npu::Core& core) {
                  const int pe = core.my_pe();
                  moe_combine_direct_sender(
                      core, send_of(plans.value()[static_cast<std::size_t>(pe)], layout, x.value().get(),
                                    job.value()->at(pe, slots), job.value()->at(pe, region)));
              })
        .status;
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
