// SPDX-License-Identifier: BSD-3-Clause
// The memory of a dispatch in a checked job, and the arguments of its kernels on each PE. Everything that the kernels
// use but the rows to send is in the job's memory, aligned to a cache line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/moe/common/routing.hpp"
#include "core/moe/dispatch/dispatch_layout.hpp"
#include "npushmem/npu/checked_job.hpp"

namespace npushmem::moe {

// The largest number of choices of a rank.
inline std::uint64_t max_choices(const Routing& routing) {
    std::size_t most = 0;
    for (const auto& ids : routing.expert_ids) most = std::max(most, ids.size());
    return most;
}

class DispatchInJob {
public:
    // `job`, with a PE for each rank, and `routing` must outlive the object.
    DispatchInJob(npu::CheckedJob& job, const Routing& routing, const DispatchLayout& layout)
        : job_(job), routing_(routing), layout_(layout), placement_(routing.experts, routing.ranks()) {
        const std::uint64_t choices = max_choices(routing);
        const std::uint64_t entries = entries_of(routing);
        region_ = job.allocate<std::byte>(layout.total().value());
        experts_ = job.allocate<std::int32_t>(choices);
        tables_.record = job.allocate<std::byte>(layout.record_bytes().value());
        tables_.order = job.allocate<std::uint32_t>(choices);
        tables_.begins = job.allocate<std::uint64_t>(number(routing.experts) + 1);
        tables_.starts = job.allocate<std::uint64_t>(number(routing.experts));
        tables_.totals = job.allocate<std::uint64_t>(number(routing.ranks()));
        tables_.accepted = job.allocate<std::uint64_t>(1);
        tables_.offset_table = job.allocate<std::int32_t>(entries);
        tables_.length_table = job.allocate<std::int32_t>(entries);
        for (int pe = 0; pe < routing.ranks(); ++pe)
            std::ranges::copy(routing.expert_ids[static_cast<std::size_t>(pe)], job.at(pe, experts_));
    }

    // Bytes of all that, without alignment.
    static Bytes size(const Routing& routing, const DispatchLayout& layout) {
        return layout.total() + layout.record_bytes() +
               Bytes{8 * max_choices(routing) + 16 * (number(routing.experts) + 1) + 8 * number(routing.ranks()) +
                     8 * entries_of(routing)};
    }

    [[nodiscard]] DispatchWork work_of(int pe, const std::byte* in, std::uint64_t epoch, CopyRoute route) const {
        DispatchWork work;
        work.in = in;
        work.experts = job_.at(pe, experts_);
        work.choices = routing_.expert_ids[static_cast<std::size_t>(pe)].size();
        work.top_k = routing_.top_k;
        work.placement = placement_;
        work.region = job_.at(pe, region_);
        work.layout = layout_;
        work.epoch = epoch;
        work.route = route;
        work.tables = {job_.at(pe, tables_.record),       job_.at(pe, tables_.order),
                       job_.at(pe, tables_.begins),       job_.at(pe, tables_.starts),
                       job_.at(pe, tables_.totals),       job_.at(pe, tables_.accepted),
                       job_.at(pe, tables_.offset_table), job_.at(pe, tables_.length_table)};
        return work;
    }

private:
    static std::uint64_t number(std::int32_t value) { return static_cast<std::uint64_t>(value); }
    // Of the tables of a rank; rank 0 holds the most experts.
    static std::uint64_t entries_of(const Routing& routing) {
        return number(ExpertPlacement(routing.experts, routing.ranks()).local_experts(0)) * number(routing.ranks());
    }

    npu::CheckedJob& job_;
    const Routing& routing_;
    DispatchLayout layout_;
    ExpertPlacement placement_;
    std::byte* region_;
    std::int32_t* experts_;
    DispatchTables tables_;
};

}  // namespace npushmem::moe
