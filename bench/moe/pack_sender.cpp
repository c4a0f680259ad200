// SPDX-License-Identifier: BSD-3-Clause
#include "bench/moe/pack_sender.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/element.hpp"
#include "core/moe/common/nontemporal_copy.hpp"
#include "core/moe/common/staged_copy.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::moe {

namespace {

using npu::Core;

// A CPU needs no staging: one copy moves a whole contiguous fragment.
class DirectPack {
public:
    DirectPack(Core&, const std::byte* x, Bytes row, std::byte* target) : x_(x), row_(row.value()), target_(target) {}
    void put(Fragment fragment) {
        const std::size_t bytes = fragment.count.value() * row_;
        std::memcpy(target_, x_ + fragment.first.value() * row_, bytes);
        target_ += bytes;
    }
    static void finish() {}

private:
    const std::byte* x_;
    std::size_t row_;
    std::byte* target_;
};

class StreamingPack {
public:
    StreamingPack(Core&, const std::byte* x, Bytes row, std::byte* target)
        : x_(x), row_(row.value()), target_(target) {}
    void put(Fragment fragment) {
        const std::size_t bytes = fragment.count.value() * row_;
        copy_nontemporal(target_, x_ + fragment.first.value() * row_, bytes);
        target_ += bytes;
    }
    static void finish() { nontemporal_fence(); }

private:
    const std::byte* x_;
    std::size_t row_;
    std::byte* target_;
};

// Arguments that pass check_pack cannot fail here. A kernel that is launched without that check must not write beyond
// its region.
void check_fragment(const PackArguments& pack, std::int32_t expert, std::int32_t rank, Fragment fragment, Rows before) {
    const auto length = static_cast<std::int64_t>(fragment.count.value());
    const auto offset = static_cast<std::int64_t>(fragment.first.value());
    const Rows capacity = pack.max_send_len;
    if (length >= 0 && offset >= 0 && before + fragment.count <= capacity) return;
    throw npu::KernelError(
        Code::range,
        fmt::format("local expert {}, rank {}: {} rows from row {} of x behind {} others do not fit into a "
                    "region of {} rows",
                    expert, rank, length, offset, before.value(), capacity.value()));
}

// Returns the rank's number of rows.
template <class Route>
Rows pack_rank(Core& core, const PackArguments& pack, std::int32_t rank, std::byte* target) {
    const std::size_t mark = core.ub_used();
    Rows rows;
    {
        Route route(core, pack.x, pack.row, target + pack.region(rank).value());
        TableColumns columns(core, pack.tables, rank);
        for (std::int32_t expert = 0; expert < pack.tables.num_local_experts; ++expert) {
            const Fragment fragment = columns.fragment(expert);
            if (fragment.count == Rows{0}) continue;
            check_fragment(pack, expert, rank, fragment, rows);
            route.put(fragment);
            rows += fragment.count;
        }
        route.finish();
    }
    core.ub_release(mark);
    return rows;
}

template <class Route>
void copy_rank(Core& core, const PackArguments& pack, std::int32_t rank, Rows rows) {
    const std::size_t mark = core.ub_used();
    const std::uint64_t region = pack.region(rank).value();
    Route route(core, pack.ordered + region, pack.row, pack.tx_buffer + region);
    if (rows > Rows{0}) route.put({Rows{0}, rows});
    route.finish();
    core.ub_release(mark);
}

Rows rows_of_rank(Core& core, const PackArguments& pack, std::int32_t rank) {
    const std::size_t mark = core.ub_used();
    Rows rows;
    TableColumns columns(core, pack.tables, rank);
    for (std::int32_t expert = 0; expert < pack.tables.num_local_experts; ++expert) {
        rows += columns.fragment(expert).count;
    }
    core.ub_release(mark);
    return rows;
}

void signal_packed(Core& core, const PackArguments& pack, std::int32_t rank) {
    if (pack.packed == nullptr) return;
    core.fence();
    core.signal_set(pack.packed + static_cast<std::size_t>(rank) * PackArguments::packed_line, pack.call);
}

// Calls visit(rank) for the ranks of this core.
template <class Visit>
void for_own_ranks(Core& core, const PackArguments& pack, const Visit& visit) {
    const std::int32_t ranks = pack.tables.num_ranks;
    for (std::int32_t i = core.index(); i < ranks; i += core.count()) visit((core.my_pe() + 1 + i) % ranks);
}

template <class Route>
void gather(Core& core, const PackArguments& pack) {
    for_own_ranks(core, pack, [&](std::int32_t rank) {
        pack_rank<Route>(core, pack, rank, pack.tx_buffer);
        signal_packed(core, pack, rank);
    });
}

template <class Route>
void reorder(Core& core, const PackArguments& pack) {
    for_own_ranks(core, pack, [&](std::int32_t rank) { pack_rank<Route>(core, pack, rank, pack.ordered); });
    // Plan 1 reorders all of x before it copies any of it.
    core.core_barrier();
    for_own_ranks(core, pack, [&](std::int32_t rank) {
        copy_rank<Route>(core, pack, rank, rows_of_rank(core, pack, rank));
        signal_packed(core, pack, rank);
    });
}

}  // namespace

void pack_rows(Core& core, const PackArguments& pack) {
    switch (pack.route) {
        case CopyRoute::staged: return gather<StagedPack>(core, pack);
        case CopyRoute::direct: return gather<DirectPack>(core, pack);
        case CopyRoute::streaming: return gather<StreamingPack>(core, pack);
    }
}

void reorder_rows(Core& core, const PackArguments& pack) {
    switch (pack.route) {
        case CopyRoute::staged: return reorder<StagedPack>(core, pack);
        case CopyRoute::direct: return reorder<DirectPack>(core, pack);
        case CopyRoute::streaming: return reorder<StreamingPack>(core, pack);
    }
}

void moe_combine_sender(Core& core, const std::byte* x, std::byte* tx_buffer, const std::int32_t* offset_table,
                        const std::int32_t* length_table, std::int32_t num_local_experts, std::int32_t num_ranks,
                        std::int32_t hidden_size, std::int32_t max_send_len) {
    PackArguments pack;
    pack.x = x;
    pack.tx_buffer = tx_buffer;
    pack.tables = {offset_table, length_table, num_local_experts, num_ranks};
    pack.row = bytes_of(Elements{static_cast<std::uint64_t>(hidden_size)}, size_of(ElementType::bfloat16));
    pack.max_send_len = Rows{static_cast<std::uint64_t>(max_send_len)};
    pack_rows(core, pack);
}

namespace {

Status check_range(const char* field, std::int64_t value, std::int64_t most) {
    if (value >= 1 && value <= most) return {};
    return {Code::argument, fmt::format("moe: {} is {}, must be from 1 to {}", field, value, most)};
}

// Limits that keep all products here within 64 bits.
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
