// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/direct/combine_receiver.hpp"

#include <fmt/format.h>

#include <atomic>

#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/staged_sums.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::moe {
namespace {

using npu::Core;
using npu::KernelError;

[[noreturn]] void throw_aborted(const CombineReceive& receive, int rank) {
    throw KernelError(Code::aborted, fmt::format("combine, call {}: rank {} has aborted; its own error names the cause",
                                                 receive.epoch, rank));
}

// A word that counts the calls of a rank, and what an error calls a number of it.
struct CallWord {
    const std::uint64_t* word;
    int rank;
    const char* awaited;    // follows "rank 0 waits"
    const char* last_call;  // precedes the number
};

// Waits until the word is that of this call, and returns it.
std::uint64_t await_call(Core& core, const CombineReceive& receive, const CallWord& of) {
    const npu::WaitLimit limit = wait_for_rank(core, of.rank, receive.timeout);
    const auto seen = core.signal_wait_for(of.word, npu::Compare::greater_equal, receive.epoch, limit);
    if (!seen.ok()) {
        throw KernelError(
            seen.status().code(),
            fmt::format("combine, call {}: rank {} waits {} rank {}, {} {}: {}", receive.epoch, core.my_pe(),
                        of.awaited, of.rank, of.last_call, core.signal_fetch(of.word), seen.status().message()));
    }
    const std::uint64_t call = without_abort_bit(seen.value());
    if (is_aborted(seen.value()) && call < receive.epoch) throw_aborted(receive, of.rank);
    return call;
}

const std::uint64_t* signal_of(const CombineReceive& receive, int rank) {
    return reinterpret_cast<const std::uint64_t*>(receive.region + receive.layout.signal(rank).value());
}

void await_rows(Core& core, const CombineReceive& receive, int rank) {
    const std::uint64_t call =
        await_call(core, receive, {signal_of(receive, rank), rank, "for the rows of", "whose last finished call is"});
    // See slot_layout.hpp: a source cannot be more than one call ahead of a rank that it needs a signal from.
    if (call <= receive.epoch + 1) return;
    throw KernelError(Code::protocol,
                      fmt::format("combine: rank {} is in call {} while rank {} is in call {}; all ranks must "
                                  "make the same calls on a handle, or its memory was overwritten",
                                  rank, call, core.my_pe(), receive.epoch));
}

// Calls visit(rank) for this core's share of the ranks, starting after this one.
template <class Visit>
void for_each_rank(Core& core, const CombineReceive& receive, const Visit& visit) {
    for (std::int32_t i = core.index(); i < receive.num_ranks; i += core.count())
        visit((core.my_pe() + 1 + i) % receive.num_ranks);
}

// Adds the rows of a token. `any_offered`: some rank offers its rows.
void gather_rows(const CombineReceive& receive, const Offers& offers, bool any_offered, std::uint64_t token,
                 WeightedRows& rows) {
    const auto top_k = static_cast<std::uint64_t>(receive.top_k);
    const bool per_rank = receive.in_place.per_rank;
    for (std::uint64_t slot = token * top_k; slot < (token + 1) * top_k; ++slot) {
        const std::int32_t id = receive.experts[slot];
        if (id < 0) continue;
        if (!any_offered || !offers.has(receive.in_place.rank_of(id)))
            rows.add(receive.region + receive.layout.slot(receive.epoch, slot).value(), receive.weights[slot]);
        else if (per_rank)
            offers.add_rows(token, id, rows);
        else
            rows.add(offers.row(slot), receive.weights[slot]);
        if (any_offered && per_rank) rows.end_sum();
    }
}

// Rejects rows that their rank may have changed: it has aborted this call since it offered them.
void check_offered_rows(Core& core, const CombineReceive& receive, const Offers& offers) {
    // Acquire: orders the reads of the rows before those of the words.
    std::atomic_thread_fence(std::memory_order_acquire);
    for_each_rank(core, receive, [&](int rank) {
        if (offers.has(rank) && is_aborted(core.signal_fetch(signal_of(receive, rank)))) throw_aborted(receive, rank);
    });
}

// Acknowledges the rows of the ranks that have offered theirs, and waits until all ranks have read those that this one
// has offered.
void acknowledge(Core& core, const CombineReceive& receive, const Offers& offers) {
    const InPlaceMemory& memory = receive.in_place.memory;
    for_each_rank(core, receive, [&](int rank) {
        if (offers.has(rank)) core.signal_set_on(memory.word(memory.layout.read(core.my_pe())), receive.epoch, rank);
    });
    if (!receive.in_place.offers_own_rows) return;
    // A core that finds a failure below must not keep another one from acknowledging.
    core.core_barrier();
    for_each_rank(core, receive, [&](int rank) {
        const std::uint64_t* const word = memory.word(memory.layout.read(rank));
        const std::uint64_t call = await_call(
            core, receive, {word, rank, "until its rows have been read by", "which has read rows here until call"});
        if (call == receive.epoch) return;
        throw KernelError(Code::protocol,
                          fmt::format("combine: rank {} has read rows of rank {} in call {}, which is in call {}; the "
                                      "memory of the handle was overwritten",
                                      rank, core.my_pe(), call, receive.epoch));
    });
}

}  // namespace

void moe_combine_receiver(Core& core, const CombineReceive& receive) {
    for_each_rank(core, receive, [&](int rank) { await_rows(core, receive, rank); });
    core.core_barrier();
    reduce_share(core, receive, {Tokens{0}, receive.tokens});
    const Offers offers(core, receive.in_place, receive.epoch);
    if (!offers.any(receive.num_ranks)) return;
    core.core_barrier();
    check_offered_rows(core, receive, offers);
    acknowledge(core, receive, offers);
}

void reduce_share(Core& core, const CombineReceive& receive, const TokenRange& range) {
    const auto cores = static_cast<std::uint64_t>(core.count());
    const auto index = static_cast<std::uint64_t>(core.index());
    const std::uint64_t first = range.begin.value();
    const std::uint64_t tokens = range.end.value() - first;
    const std::uint64_t begin = first + tokens * index / cores;
    const std::uint64_t end = first + tokens * (index + 1) / cores;
    const Offers offers(core, receive.in_place, receive.epoch);
    const bool any_offered = offers.any(receive.num_ranks);
    const auto gather = [&](std::uint64_t token, WeightedRows& rows) {
        gather_rows(receive, offers, any_offered, token, rows);
    };
    const auto target = [&](std::uint64_t token) { return receive.out + receive.out_row.value() * token; };
    if (receive.reduction.staged) return staged_sums(core, receive.reduction, begin, end, gather, target);
    reduce_each(receive.reduction, begin, end, gather, target, [](std::uint64_t) {});
}

}  // namespace npushmem::moe
