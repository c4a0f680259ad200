#include "core/moe/pack/pack.hpp"

#include <fmt/format.h>

#include "core/moe/memory_extent.hpp"
#include "core/moe/pack/pack_sender.hpp"
#include "core/moe/plan_check.hpp"

namespace npushmem::moe {
namespace {

Status check_range(const char* field, std::int64_t value, std::int64_t most) {
    if (value >= 1 && value <= most) return {};
    return {Code::argument, fmt::format("moe: {} is {}, must be from 1 to {}", field, value, most)};
}

// Limits under which no product here leaves 64 bits.
Status check_sizes(const PackArguments& pack) {
    constexpr std::int64_t max_ranks = 1 << 20;
    constexpr std::int64_t max_rows = 0x7FFFFFFF;
    constexpr std::int64_t max_bytes = 1 << 26;
    const auto row = static_cast<std::int64_t>(pack.row.value());
    const auto capacity = static_cast<std::int64_t>(pack.max_send_len.value());
    if (Status s = check_range("num_ranks", pack.tables.num_ranks, max_ranks); !s.ok()) return s;
    if (Status s = check_range("num_local_experts", pack.tables.num_local_experts, max_ranks); !s.ok()) return s;
    if (Status s = check_range("a row's bytes", row, max_bytes); !s.ok()) return s;
    if (Status s = check_range("max_send_len", capacity, max_rows); !s.ok()) return s;
    if (pack.tables.offsets != nullptr && pack.tables.lengths != nullptr) return {};
    return {Code::argument, "moe: offset_table or length_table is null"};
}

Status check_fragments(const PackArguments& pack, Rows rows) {
    CombinePlan plan;
    plan.local_experts = pack.tables.num_local_experts;
    plan.ranks = pack.tables.num_ranks;
    plan.rows = rows;
    const std::size_t entries = plan.entry(plan.local_experts, 0);
    plan.offset_table.assign(pack.tables.offsets, pack.tables.offsets + entries);
    plan.length_table.assign(pack.tables.lengths, pack.tables.lengths + entries);
    return check_tables(plan, pack.max_send_len);
}

Status check_memory(const PackArguments& pack, Rows rows, PackPlan plan) {
    const Extent x{"x", pack.x, bytes_of(rows, pack.row)};
    const Extent tx{"tx_buffer", pack.tx_buffer, pack.tx_bytes()};
    if (Status s = check_address(x, ElementSize{1}); !s.ok()) return s;
    if (Status s = check_address(tx, ElementSize{1}); !s.ok()) return s;
    if (Status s = check_apart(x, tx); !s.ok()) return s;
    if (plan == PackPlan::gather) return {};
    const Extent ordered{"the memory for reordering", pack.ordered, pack.tx_bytes()};
    if (Status s = check_address(ordered, ElementSize{1}); !s.ok()) return s;
    if (Status s = check_apart(x, ordered); !s.ok()) return s;
    return check_apart(tx, ordered);
}

}  // namespace

Status check_pack(const PackArguments& pack, Rows rows, PackPlan plan) {
    if (Status s = check_sizes(pack); !s.ok()) return s;
    if (Status s = check_fragments(pack, rows); !s.ok()) return s;
    return check_memory(pack, rows, plan);
}

Status launch_pack(npu::Stream& stream, const npu::LaunchConfig& launch, const PackArguments& pack, Rows rows,
                   PackPlan plan) {
    if (Status s = check_pack(pack, rows, plan); !s.ok()) return s;
    return npu::launch(stream, launch, plan == PackPlan::gather ? pack_rows : reorder_rows, pack);
}

}  // namespace npushmem::moe
