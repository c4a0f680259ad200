// One destination's columns of the two tables, fetched into the unified buffer by strided copies, so that the send loop
// does not walk a row-major table four bytes at a time. Fetched in batches, so that any number of experts works.
#pragma once

#include <algorithm>

#include "core/moe/combine_plan.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// The tables as a kernel gets them: row-major [num_local_experts, num_ranks], as in combine_plan.hpp.
struct FragmentTables {
    const std::int32_t* offsets = nullptr;
    const std::int32_t* lengths = nullptr;
    std::int32_t num_local_experts = 0;
    std::int32_t num_ranks = 0;
};

class TableColumns {
public:
    static constexpr std::int32_t batch = 256;

    TableColumns(npu::Core& core, const FragmentTables& tables, std::int32_t rank)
        : core_(core),
          tables_(tables),
          rank_(rank),
          offsets_(core.ub_alloc<std::int32_t>(step * batch)),
          lengths_(core.ub_alloc<std::int32_t>(step * batch)) {}

    // Experts must be asked for in ascending order.
    Fragment fragment(std::int32_t expert) {
        if (expert % batch == 0) fetch(expert);
        const auto at = static_cast<std::size_t>(expert % batch) * step;
        return {Rows{static_cast<std::uint64_t>(core_.get(offsets_, at))},
                Rows{static_cast<std::uint64_t>(core_.get(lengths_, at))}};
    }

private:
    // A padded copy puts each block on a 32-byte boundary: one entry every eight words.
    static constexpr std::size_t step = npu::ub_alignment / sizeof(std::int32_t);

    void fetch(std::int32_t first) {
        const auto blocks = static_cast<std::size_t>(std::min(batch, tables_.num_local_experts - first));
        copy(offsets_, tables_.offsets, first, blocks);
        copy(lengths_, tables_.lengths, first, blocks);
        core_.set_flag<npu::Pipe::copy_in, npu::Pipe::scalar>(1);
        core_.wait_flag<npu::Pipe::copy_in, npu::Pipe::scalar>(1);
    }

    void copy(npu::ub_view<std::int32_t> column, const std::int32_t* table, std::int32_t first, std::size_t blocks) {
        const auto ranks = static_cast<std::size_t>(tables_.num_ranks);
        const std::int32_t* begin = table + static_cast<std::size_t>(first) * ranks + static_cast<std::size_t>(rank_);
        const npu::PadShape shape{blocks, sizeof(std::int32_t), (ranks - 1) * sizeof(std::int32_t), 0};
        core_.data_copy_pad(column, npu::gm(begin, (blocks - 1) * ranks + 1), shape);
    }

    npu::Core& core_;
    FragmentTables tables_;
    std::int32_t rank_;
    npu::ub_view<std::int32_t> offsets_;
    npu::ub_view<std::int32_t> lengths_;
};

}  // namespace npushmem::moe
