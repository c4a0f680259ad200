#include "core/moe/send_estimate.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "core/moe/combine_plan.hpp"
#include "core/moe/combine_sender.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::moe {
namespace {

constexpr std::uint64_t epoch = 1;

Rows most_slots(const Routing& routing) {
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

std::uint64_t most_rows(const std::vector<CombinePlan>& plans) {
    std::uint64_t most = 0;
    for (const CombinePlan& plan : plans) most = std::max(most, plan.rows.value());
    return most;
}

CombineSend send_of(const CombinePlan& plan, const SlotLayout& layout, const std::byte* x, std::byte* region) {
    CombineSend send;
    send.x = x;
    send.offset_table = plan.offset_table.data();
    send.length_table = plan.length_table.data();
    send.slots = plan.slots.data();
    send.num_local_experts = plan.local_experts;
    send.num_ranks = plan.ranks;
    send.region = region;
    send.layout = layout;
    send.epoch = epoch;
    send.route = CopyRoute::staged;
    return send;
}

npu::CheckedJobConfig job_config(const SlotLayout& layout, int ranks, const EstimateCores& cores) {
    npu::CheckedJobConfig config{.pes = ranks, .heap_bytes = layout.total().value() + 4096, .check = false};
    config.schedule.kind = npu::Schedule::Kind::eager;
    config.device.blocks = cores.blocks;
    config.device.vector_cores = cores.vector_cores;
    return config;
}

}  // namespace

Status estimate_send(npu::VirtualTime& time, const Routing& routing, Bytes row, const EstimateCores& cores) {
    const SlotLayout layout(routing.ranks(), most_slots(routing), row);
    auto plans = plans_of(routing);
    if (!plans.ok()) return plans.status();
    auto job = npu::CheckedJob::create(job_config(layout, routing.ranks(), cores));
    if (!job.ok()) return job.status();
    auto* region = job.value()->allocate<std::byte>(layout.total().value());
    const std::vector<std::byte> x(bytes_of(Rows{most_rows(plans.value())}, row).value());
    npu::LaunchConfig launch(cores.blocks);
    launch.name = "moe_combine_direct_sender";
    launch.hooks = time.hooks();
    return job.value()
        ->run(launch,
              [&](npu::Core& core) {
                  const auto pe = static_cast<std::size_t>(core.my_pe());
                  moe_combine_direct_sender(
                      core, send_of(plans.value()[pe], layout, x.data(), job.value()->at(core.my_pe(), region)));
              })
        .status;
}

LinksBusy links_busy(const npu::VirtualReport& report, int ranks) {
    if (ranks < 2) return {};
    LinksBusy busy{std::numeric_limits<double>::max(), 0, 0};
    std::size_t used = 0;
    for (const npu::VirtualReport::Link& link : report.links) {
        if (link.from < 0 || link.to < 0) continue;
        ++used;
        busy.least = std::min(busy.least, link.busy);
        busy.mean += link.busy;
        busy.most = std::max(busy.most, link.busy);
    }
    const auto all = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks - 1);
    if (used < all) busy.least = 0;
    busy.mean /= static_cast<double>(all);
    return busy;
}

}  // namespace npushmem::moe
