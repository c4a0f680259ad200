// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/dispatch/dispatch_kernel.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/nontemporal_copy.hpp"
#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/staged_copy.hpp"
#include "core/moe/dispatch/dispatch_tables.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::moe {
namespace {

using npu::Core;
using npu::Pipe;

// Rows: copies the rows of this rank for one holder of experts from `in` to the holder's x.

// The copy routes. Each puts rows one after another, from the address on that begin() sets, for a number of experts.
class DirectPuts {
public:
    DirectPuts(Core& core, const DispatchWork& work, std::int32_t holder) : core_(core), work_(work), holder_(holder) {}

    void begin(std::byte* target) { target_ = target; }
    void put(std::uint32_t slot) {
        const std::size_t row = work_.layout.row_bytes().value();
        core_.put(target_, work_.row_of(slot), row, holder_);
        target_ += row;
    }
    static void finish() {}

private:
    Core& core_;
    const DispatchWork& work_;
    std::int32_t holder_;
    std::byte* target_ = nullptr;
};

class StreamingPuts {
public:
    StreamingPuts(Core& core, const DispatchWork& work, std::int32_t holder)
        : core_(core), work_(work), holder_(holder) {}

    void begin(std::byte* target) { remote_ = core_.remote(target, holder_); }
    void put(std::uint32_t slot) {
        const std::size_t row = work_.layout.row_bytes().value();
        copy_nontemporal(remote_, work_.row_of(slot), row);
        remote_ += row;
    }
    // Streaming stores are unordered: even a release store of the signal could overtake them.
    static void finish() { nontemporal_fence(); }

private:
    Core& core_;
    const DispatchWork& work_;
    std::int32_t holder_;
    std::byte* remote_ = nullptr;
};

// Rows of one expert are contiguous at its holder, so one copy writes many short rows.
class StagedPuts {
public:
    StagedPuts(Core& core, const DispatchWork& work, std::int32_t holder)
        : core_(core), work_(work), holder_(holder), pack_(core, work.in, work.layout.row_bytes(), nullptr) {}

    void begin(std::byte* target) { pack_.continue_at(core_.remote(target, holder_)); }
    void put(std::uint32_t slot) { pack_.put({Rows{slot / static_cast<std::uint32_t>(work_.top_k)}, Rows{1}}); }
    void finish() { pack_.finish(); }

private:
    Core& core_;
    const DispatchWork& work_;
    std::int32_t holder_;
    StagedPack pack_;
};

struct Fragments {
    std::uint64_t begin = 0;  // in `order`
    std::uint64_t end = 0;
    std::uint64_t start = 0;  // in x of the holder
};

void put_slots(Core& core, const DispatchWork& work, std::int32_t holder, const Fragments& f) {
    if (work.slots_to_send() == nullptr) return;
    core.put(work.slots() + f.start, work.slots_to_send() + f.begin, f.end - f.begin, holder);
    if (work.row_choices == nullptr) return;
    const std::uint64_t each = work.layout.choices_per_row();
    core.put(work.choices_here() + f.start * each, work.row_choices + f.begin * each, (f.end - f.begin) * each, holder);
}

// A core's share of the rows of each of the holder's experts.
template <class Route>
void put_share(Core& core, const DispatchWork& work, std::int32_t holder, const Share& share) {
    const std::size_t mark = core.ub_used();
    {
        Route route(core, work, holder);
        for (std::int32_t e = work.placement.first_expert(holder); e < work.placement.first_expert(holder + 1); ++e) {
            const std::uint64_t begin = core.load(work.tables.begins + e);
            const std::uint64_t end = core.load(work.tables.begins + e + 1);
            if (begin == end) continue;
            const std::uint64_t start = core.load(work.tables.starts + e);
            if (share.is_first(e)) put_slots(core, work, holder, {begin, end, start});
            const Fragment rows = share.of({Rows{begin}, Rows{end - begin}}, e);
            if (rows.count == Rows{0}) continue;
            const std::uint64_t first = rows.first.value();
            route.begin(work.x() + (work.layout.row_bytes() * (start + first - begin)).value());
            for (std::uint64_t i = first; i < first + rows.count.value(); ++i)
                route.put(core.load(work.tables.order + i));
        }
        route.finish();
    }
    core.ub_release(mark);
    core.set_flag<Pipe::copy_out, Pipe::scalar>(0);
    core.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
}

void put_rows(Core& core, const DispatchWork& work, std::int32_t holder, const Share& share) {
    switch (work.route) {
        case CopyRoute::staged: return put_share<StagedPuts>(core, work, holder, share);
        case CopyRoute::direct: return put_share<DirectPuts>(core, work, holder, share);
        case CopyRoute::streaming: return put_share<StreamingPuts>(core, work, holder, share);
    }
}

using npu::KernelError;

// Calls visit(rank) for the ranks of this core.
template <class Visit>
void for_own_ranks(Core& core, const DispatchWork& work, const Visit& visit) {
    const std::int32_t ranks = work.layout.ranks();
    for (std::int32_t i = core.index(); i < ranks; i += core.count()) visit((core.my_pe() + 1 + i) % ranks);
}

// Puts the rows of a call that this rank accepts to all ranks that are mapped, and then announces them to each.
template <class Announce>
void send_rows(Core& core, const DispatchWork& work, const Announce& announce) {
    send_to_all(
        core, work.layout.ranks(), work.route,
        [&](std::int32_t rank, const Share& share) {
            if (work.accepts && !work.is_host_served(rank)) put_rows(core, work, rank, share);
        },
        [&](std::int32_t rank) {
            if (!work.is_host_served(rank)) announce(rank);
        });
}

void put_record(Core& core, const DispatchWork& work, Bytes signal, std::int32_t rank) {
    const std::uint64_t record = work.layout.record(work.epoch, core.my_pe()).value();
    core.put_signal(work.region + record, work.tables.record, work.record_bytes(), work.word(signal), work.epoch, rank);
}

void await(Core& core, const DispatchWork& work, Bytes offset, std::int32_t source, const char* what) {
    const std::uint64_t* word = work.word(offset);
    const auto seen =
        core.signal_wait_for(word, npu::Compare::greater_equal, work.epoch, wait_for_rank(core, source, work.timeout));
    if (!seen.ok()) {
        throw KernelError(
            seen.status().code(),
            fmt::format("dispatch, call {}: rank {} waits for the {} of rank {}, whose last were those of "
                        "call {}: {}",
                        work.epoch, core.my_pe(), what, source, core.signal_fetch(word), seen.status().message()));
    }
    const std::uint64_t call = without_abort_bit(seen.value());
    if (is_aborted(seen.value()) && call < work.epoch) {
        throw KernelError(
            Code::aborted,
            fmt::format("dispatch, call {}: rank {} has aborted; its own error names the cause", work.epoch, source));
    }
    // See dispatch_layout.hpp: no rank can be more than one call ahead of a rank whose counts it needs.
    if (call <= work.epoch + 1) return;
    throw KernelError(
        Code::protocol,
        fmt::format("dispatch: rank {} is in call {} while rank {} is in call {}; all ranks must make the "
                    "same calls on a handle, or its memory was overwritten",
                    source, call, core.my_pe(), work.epoch));
}

}  // namespace

void moe_dispatch_sort(Core& core, const DispatchWork& work) {
    if (core.index() == 0) sort_choices(core, work);
    core.core_barrier();
}

void moe_dispatch_publish_counts(Core& core, const DispatchWork& work) {
    moe_dispatch_sort(core, work);
    for_own_ranks(core, work, [&](std::int32_t rank) {
        if (!work.is_host_served(rank)) put_record(core, work, work.layout.counts(core.my_pe()), rank);
    });
}

void moe_dispatch_tables(Core& core, const DispatchWork& work) {
    for_own_ranks(core, work, [&](std::int32_t rank) { await(core, work, work.layout.counts(rank), rank, "counts"); });
    core.core_barrier();
    if (core.index() == 0) make_tables(core, work);
    core.core_barrier();
}

void moe_dispatch_rows(Core& core, const DispatchWork& work) {
    send_rows(core, work, [&](std::int32_t rank) {
        core.signal_set_on(work.word(work.layout.arrived(core.my_pe())), work.epoch, rank);
    });
}

void moe_dispatch_await(Core& core, const DispatchWork& work) {
    for_own_ranks(core, work, [&](std::int32_t rank) { await(core, work, work.layout.arrived(rank), rank, "rows"); });
}

void moe_dispatch_send_fixed(Core& core, const DispatchWork& work) {
    send_rows(core, work, [&](std::int32_t rank) { put_record(core, work, work.layout.arrived(core.my_pe()), rank); });
}

void moe_dispatch_sort_and_send_fixed(Core& core, const DispatchWork& work) {
    moe_dispatch_sort(core, work);
    moe_dispatch_send_fixed(core, work);
}

void moe_dispatch_receive_fixed(Core& core, const DispatchWork& work) {
    moe_dispatch_await(core, work);
    core.core_barrier();
    if (core.index() == 0) make_tables(core, work);
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
