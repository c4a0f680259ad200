// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/moe/copies.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "bench/moe/pack_sender.hpp"
#include "core/moe/common/nontemporal_copy.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"
#include "npushmem/npu/npu.hpp"

namespace npushmem::perf {

PageMemory page_memory(std::size_t bytes, std::byte filling) {
    constexpr std::size_t page = 4096;
    const std::size_t all = (bytes / page + 1) * page;
    PageMemory memory(static_cast<std::byte*>(std::aligned_alloc(page, all)));
    if (!memory) throw std::bad_alloc();
    std::memset(memory.get(), std::to_integer<int>(filling), all);
    return memory;
}

CopyBaseline::CopyBaseline(const std::byte* source, std::size_t bytes)
    : source_(source), bytes_(bytes), memory_(page_memory(2 * bytes)) {}

std::byte* CopyBaseline::next_target() {
    second_ = !second_;
    return memory_.get() + (second_ ? bytes_ : 0);
}

Status CopyBaseline::ordinary() {
    if (bytes_ > 0) std::memcpy(next_target(), source_, bytes_);
    return {};
}

Status CopyBaseline::streaming() {
    moe::copy_nontemporal(next_target(), source_, bytes_);
    moe::nontemporal_fence();
    return {};
}

namespace {

moe::Rows max_rows(const npushmemx_moe_plan_t& plan) {
    std::uint64_t most = 1;
    for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
        std::uint64_t rows = 0;
        for (std::int32_t e = 0; e < plan.local_experts; ++e) {
            rows += static_cast<std::uint64_t>(plan.length_table[e * plan.ranks + rank]);
        }
        most = std::max(most, rows);
    }
    return moe::Rows{most};
}

moe::CopyRoute route_of(std::int32_t copy) {
    if (copy == NPUSHMEMX_MOE_COPY_STAGED) return moe::CopyRoute::staged;
    return copy == NPUSHMEMX_MOE_COPY_STREAMING ? moe::CopyRoute::streaming : moe::CopyRoute::direct;
}

}  // namespace

PackPlans::PackPlans(const npushmemx_moe_plan_t& plan, const std::byte* x, std::int64_t row_bytes) {
    pack_.x = x;
    pack_.tables = {plan.offset_table, plan.length_table, plan.local_experts, plan.ranks};
    pack_.row = moe::Bytes{static_cast<std::uint64_t>(row_bytes)};
    pack_.max_send_len = max_rows(plan);
    pack_.route = route_of(plan.copy);
    tx_buffer_ = page_memory(pack_.tx_bytes().value());
    ordered_ = page_memory(pack_.tx_bytes().value());
    pack_.tx_buffer = tx_buffer_.get();
    pack_.ordered = ordered_.get();
}

Status PackPlans::gather() { return run(moe::pack_rows); }
Status PackPlans::reorder() { return run(moe::reorder_rows); }

Status PackPlans::run(void (*kernel)(npu::Core&, const moe::PackArguments&)) {
    npu::Stream& stream = npu::device().default_stream();
    npu::LaunchConfig config(std::clamp(pack_.tables.num_ranks, 1, npu::device().config().blocks));
    config.name = "pack";
    if (Status s = npu::launch(stream, config, kernel, pack_); !s.ok()) return s;
    return stream.synchronize();
}

}  // namespace npushmem::perf
