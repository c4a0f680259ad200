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

void await_source(Core& core, const CombineReceive& receive, int source) {
    const auto* word = reinterpret_cast<const std::uint64_t*>(receive.region + receive.layout.signal(source).value());
    const npu::WaitLimit limit{receive.timeout, source};
    const auto seen = core.signal_wait_for(word, npu::Compare::greater_equal, receive.epoch, limit);
    if (!seen.ok()) {
        throw KernelError(
            seen.status().code(),
            fmt::format("combine, call {}: rank {} waits for the rows of rank {}, whose last finished call is "
                        "{}: {}",
                        receive.epoch, core.my_pe(), source, core.signal_fetch(word), seen.status().message()));
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

// Adds the rows of a token.
void gather_rows(const CombineReceive& receive, std::uint64_t token, WeightedRows& rows) {
    const std::uint64_t first = rows_of(Tokens{token}, static_cast<std::uint32_t>(receive.top_k)).value();
    for (std::uint64_t slot = first; slot < first + static_cast<std::uint64_t>(receive.top_k); ++slot) {
        if (receive.experts[slot] < 0) continue;
        rows.add(receive.region + receive.layout.slot(receive.epoch, slot).value(), receive.weights[slot]);
    }
}

}  // namespace

void moe_combine_receiver(Core& core, const CombineReceive& receive) {
    for (std::int32_t i = core.index(); i < receive.num_ranks; i += core.count()) {
        await_source(core, receive, (core.my_pe() + 1 + i) % receive.num_ranks);
    }
    core.core_barrier();
    reduce_share(core, receive, {Tokens{0}, receive.tokens});
}

void reduce_share(Core& core, const CombineReceive& receive, const TokenRange& range) {
    const auto cores = static_cast<std::uint64_t>(core.count());
    const auto index = static_cast<std::uint64_t>(core.index());
    const std::uint64_t first = range.begin.value();
    const std::uint64_t tokens = range.end.value() - first;
    const std::uint64_t begin = first + tokens * index / cores;
    const std::uint64_t end = first + tokens * (index + 1) / cores;
    const auto gather = [&](std::uint64_t token, WeightedRows& rows) { gather_rows(receive, token, rows); };
    const auto target = [&](std::uint64_t token) { return receive.out + receive.out_row.value() * token; };
    if (receive.reduction.staged) return staged_sums(core, receive.reduction, begin, end, gather, target);
    reduce_each(receive.reduction, begin, end, gather, target, [](std::uint64_t) {});
}

}  // namespace npushmem::moe
