#include "core/moe/dispatch/dispatch_kernel.hpp"

#include <fmt/format.h>

#include "core/moe/abort_bit.hpp"
#include "core/moe/combine_plan.hpp"
#include "core/moe/dispatch/dispatch_rows.hpp"
#include "core/moe/dispatch/dispatch_tables.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::moe {
namespace {

using npu::Core;
using npu::KernelError;

// Calls visit(rank) for the ranks of this core.
template <class Visit>
void for_own_ranks(Core& core, const DispatchWork& work, const Visit& visit) {
    const std::int32_t ranks = work.layout.ranks();
    for (std::int32_t i = core.index(); i < ranks; i += core.count()) visit((core.my_pe() + 1 + i) % ranks);
}

void publish_counts_to(Core& core, const DispatchWork& work, std::int32_t rank) {
    const std::uint64_t record = work.layout.record(work.epoch, core.my_pe()).value();
    core.put_signal(work.region + record, work.tables.record, work.layout.record_bytes().value(),
                    work.word(work.layout.counts(core.my_pe())), work.epoch, rank);
}

void await(Core& core, const DispatchWork& work, Bytes offset, std::int32_t source, const char* what) {
    const std::uint64_t* word = work.word(offset);
    const auto seen = core.signal_wait_for(word, npu::Compare::greater_equal, work.epoch, {work.timeout, source});
    if (!seen.ok()) {
        throw KernelError(
            seen.status().code(),
            fmt::format("dispatch, call {}: rank {} waits for the {} of rank {}, whose last were those of "
                        "call {}: {}",
                        work.epoch, core.my_pe(), what, source, core.signal_fetch(word), seen.status().message()));
    }
    const std::uint64_t call = without_abort_bit(seen.value());
    if (is_aborted(seen.value()) && call < work.epoch) {
        throw KernelError(Code::aborted, fmt::format("dispatch, call {}: rank {} has aborted; its own error says why",
                                                     work.epoch, source));
    }
    // See dispatch_layout.hpp: nobody can be more than one call ahead of a rank whose counts it needs.
    if (call <= work.epoch + 1) return;
    throw KernelError(
        Code::protocol,
        fmt::format("dispatch: rank {} is in call {} while rank {} is in call {}; all ranks must make the "
                    "same calls on a handle, or its memory was overwritten",
                    source, call, core.my_pe(), work.epoch));
}

}  // namespace

void moe_dispatch_publish_counts(Core& core, const DispatchWork& work) {
    if (core.index() == 0) sort_choices(core, work);
    core.core_barrier();
    for_own_ranks(core, work, [&](std::int32_t rank) {
        if (!work.is_host_served(rank)) publish_counts_to(core, work, rank);
    });
}

void moe_dispatch_tables(Core& core, const DispatchWork& work) {
    for_own_ranks(core, work, [&](std::int32_t rank) { await(core, work, work.layout.counts(rank), rank, "counts"); });
    core.core_barrier();
    if (core.index() == 0) make_tables(core, work);
    core.core_barrier();
}

void moe_dispatch_rows(Core& core, const DispatchWork& work) {
    for_own_ranks(core, work, [&](std::int32_t rank) {
        if (work.is_host_served(rank)) return;
        put_rows(core, work, rank);
        core.signal_set_on(work.word(work.layout.arrived(core.my_pe())), work.epoch, rank);
    });
}

void moe_dispatch_await(Core& core, const DispatchWork& work) {
    for_own_ranks(core, work, [&](std::int32_t rank) { await(core, work, work.layout.arrived(rank), rank, "rows"); });
}

void moe_dispatch(Core& core, const DispatchWork& work) {
    moe_dispatch_publish_counts(core, work);
    moe_dispatch_tables(core, work);
    if (core.load(work.tables.accepted) == 0) return;
    moe_dispatch_rows(core, work);
    moe_dispatch_await(core, work);
}

void moe_dispatch_signal_abort(Core& core, const DispatchWork& work) {
    for_own_ranks(core, work, [&](std::int32_t rank) {
        if (work.is_host_served(rank)) return;
        core.signal_add_on(work.word(work.layout.counts(core.my_pe())), abort_bit, rank);
        core.signal_add_on(work.word(work.layout.arrived(core.my_pe())), abort_bit, rank);
    });
}

}  // namespace npushmem::moe
