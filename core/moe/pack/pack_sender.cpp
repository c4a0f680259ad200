#include "core/moe/pack/pack_sender.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/moe/element.hpp"
#include "core/moe/nontemporal_copy.hpp"
#include "core/moe/pack/staged_pack.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::moe {
namespace {

using npu::Core;

// On a CPU there is nothing to stage for: a fragment lies in one piece, and goes to its place in one piece.
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

// What the host's check has let through cannot fail here; a kernel that is launched without it must not write beyond.
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

// Returns how many rows the rank has got.
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
    // The whole of x is in order before any of it is copied: that is what plan 1 is.
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

}  // namespace npushmem::moe
