// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/direct/combine_receiver.hpp"

#include <fmt/format.h>

#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/staged_sums.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::moe {
namespace {

using npu::Core;
using npu::KernelError;

// Waits until the word, which `source` writes, is that of this call. `purpose` follows "waits".
void await_call(Core& core, const CombineReceive& receive, const std::uint64_t* word, int source, const char* purpose) {
    const npu::WaitLimit limit{receive.timeout, source};
    const auto seen = core.signal_wait_for(word, npu::Compare::greater_equal, receive.epoch, limit);
    if (!seen.ok()) {
        throw KernelError(seen.status().code(),
                          fmt::format("combine, call {}: rank {} waits {} rank {}, whose last finished call is "
                                      "{}: {}",
                                      receive.epoch, core.my_pe(), purpose, source, core.signal_fetch(word),
                                      seen.status().message()));
    }
    const std::uint64_t call = without_abort_bit(seen.value());
    if (is_aborted(seen.value()) && call < receive.epoch) {
        throw KernelError(
            Code::aborted,
            fmt::format("combine, call {}: rank {} has aborted; its own error names the cause", receive.epoch, source));
    }
    // See slot_layout.hpp: a source cannot be more than one call ahead of a rank that it needs a signal from.
    if (call <= receive.epoch + 1) return;
    throw KernelError(Code::protocol,
                      fmt::format("combine: rank {} is in call {} while rank {} is in call {}; all ranks must "
                                  "make the same calls on a handle, or its memory was overwritten",
                                  source, call, core.my_pe(), receive.epoch));
}

// Calls visit(rank) for this core's share of the ranks, starting after this one.
template <class Visit>
void for_each_rank(Core& core, const CombineReceive& receive, const Visit& visit) {
    for (std::int32_t i = core.index(); i < receive.num_ranks; i += core.count())
        visit((core.my_pe() + 1 + i) % receive.num_ranks);
}

// Adds the rows of a token. `in_place`: null if no rank offers its rows.
void gather_rows(Core& core, const CombineReceive& receive, const ReadInPlace* in_place, std::uint64_t token,
                 WeightedRows& rows) {
    const auto top_k = static_cast<std::uint64_t>(receive.top_k);
    for (std::uint64_t slot = token * top_k; slot < (token + 1) * top_k; ++slot) {
        const std::int32_t id = receive.experts[slot];
        if (id < 0) continue;
        if (in_place != nullptr && is_offered(core, *in_place, in_place->rank_of(id)))
            add_offered(core, *in_place, slot, top_k, id, rows);
        else
            rows.add(receive.region + receive.layout.slot(receive.epoch, slot).value(), receive.weights[slot]);
        if (in_place != nullptr && in_place->per_rank) rows.end_sum();
    }
}

bool any_offered(Core& core, const CombineReceive& receive) {
    bool any = false;
    for (std::int32_t rank = 0; rank < receive.num_ranks; ++rank) any |= is_offered(core, receive.in_place, rank);
    return any;
}

// Tells the ranks that have offered their rows that this one has read them, and waits until all ranks have read those
// that this one has offered.
void acknowledge(Core& core, const CombineReceive& receive) {
    const ReadInPlace& in_place = receive.in_place;
    const auto word = [&](int rank) { return in_place.memory.word(in_place.memory.layout.read(rank)); };
    for_each_rank(core, receive, [&](int rank) {
        if (is_offered(core, in_place, rank)) core.signal_set_on(word(core.my_pe()), receive.epoch, rank);
    });
    if (!in_place.offered) return;
    for_each_rank(core, receive,
                  [&](int rank) { await_call(core, receive, word(rank), rank, "until its rows have been read by"); });
}

}  // namespace

void moe_combine_receiver(Core& core, const CombineReceive& receive) {
    for_each_rank(core, receive, [&](int rank) {
        const auto* word = reinterpret_cast<const std::uint64_t*>(receive.region + receive.layout.signal(rank).value());
        await_call(core, receive, word, rank, "for the rows of");
    });
    core.core_barrier();
    if (receive.in_place.memory.any()) fetch_offers(core, receive.in_place);
    reduce_share(core, receive, {Tokens{0}, receive.tokens});
    if (!any_offered(core, receive)) return;
    core.core_barrier();
    acknowledge(core, receive);
}

void reduce_share(Core& core, const CombineReceive& receive, const TokenRange& range) {
    const auto cores = static_cast<std::uint64_t>(core.count());
    const auto index = static_cast<std::uint64_t>(core.index());
    const std::uint64_t first = range.begin.value();
    const std::uint64_t tokens = range.end.value() - first;
    const std::uint64_t begin = first + tokens * index / cores;
    const std::uint64_t end = first + tokens * (index + 1) / cores;
    const ReadInPlace* const in_place = any_offered(core, receive) ? &receive.in_place : nullptr;
    const auto gather = [&](std::uint64_t token, WeightedRows& rows) {
        gather_rows(core, receive, in_place, token, rows);
    };
    const auto target = [&](std::uint64_t token) { return receive.out + receive.out_row.value() * token; };
    if (receive.reduction.staged) return staged_sums(core, receive.reduction, begin, end, gather, target);
    reduce_each(receive.reduction, begin, end, gather, target, [](std::uint64_t) {});
}

}  // namespace npushmem::moe
