// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/dispatch/dispatch_kernel.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "core/moe/common/combine_plan.hpp"
#include "core/moe/common/nontemporal_copy.hpp"
#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/common/staged_copy.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::moe {
namespace {

// Tables: from expert ids to counts, and from the counts of all ranks to the tables. One core does this work.

using npu::Core;

// Adds one to begins[id + 1] for every choice of expert id.
void count_choices(Core& core, const DispatchWork& work) {
    std::uint64_t* begins = work.tables.begins;
    for (std::int32_t expert = 0; expert <= work.layout.experts(); ++expert) core.store(begins + expert, 0);
    for (std::uint64_t slot = 0; slot < work.choices; ++slot) {
        const std::int32_t id = core.load(work.experts + slot);
        if (id >= 0) core.store(begins + id + 1, core.load(begins + id + 1) + 1);
    }
}

// Computes from the counts where each expert begins, and writes the counts into the record.
void sum_counts(Core& core, const DispatchWork& work) {
    std::int32_t* counts = DispatchWork::counts_of(work.tables.record);
    std::uint64_t* begins = work.tables.begins;
    for (std::int32_t expert = 0; expert < work.layout.experts(); ++expert) {
        const std::uint64_t count = core.load(begins + expert + 1);
        core.store(counts + expert, static_cast<std::int32_t>(count));
        core.store(begins + expert + 1, core.load(begins + expert) + count);
    }
    core.dcci(counts, sizeof(std::int32_t) * static_cast<std::size_t>(work.layout.experts()));
}

// Appends each choice to its expert's choices; `starts` holds the cursors.
void place_choices(Core& core, const DispatchWork& work) {
    std::uint64_t* cursors = work.tables.starts;
    for (std::int32_t e = 0; e < work.layout.experts(); ++e) core.store(cursors + e, core.load(work.tables.begins + e));
    for (std::uint64_t slot = 0; slot < work.choices; ++slot) {
        const std::int32_t id = core.load(work.experts + slot);
        if (id < 0) continue;
        const std::uint64_t at = core.load(cursors + id);
        core.store(work.tables.order + at, static_cast<std::uint32_t>(slot));
        core.store(cursors + id, at + 1);
    }
}

// Fixed slots: where the rows of this rank begin at each expert does not depend on the counts.
void set_fixed_starts(Core& core, const DispatchWork& work) {
    const ExpertRows& rows = work.layout.expert_rows();
    for (std::int32_t holder = 0; holder < work.layout.ranks(); ++holder) {
        std::uint64_t first = 0;
        for (std::int32_t e = work.placement.first_expert(holder); e < work.placement.first_expert(holder + 1); ++e) {
            core.store(work.tables.starts + e, first + rows.of_rank(core.my_pe()));
            first = rows.next_fixed(first, work.layout.ranks());
        }
    }
    core.dcci(work.tables.starts, sizeof(std::uint64_t) * static_cast<std::size_t>(work.layout.experts()));
}

// Iterates over the counts of all ranks, expert after expert and inside an expert rank after rank: the order of x.
class TableWalk {
public:
    TableWalk(Core& core, const DispatchWork& work) : core_(core), work_(work), ranks_(work.layout.ranks()) {}

    // Whether the rows for every rank fit its capacity.
    bool walk() {
        bool fits = true;
        for (std::int32_t holder = 0; holder < ranks_; ++holder) {
            const std::uint64_t rows = walk_holder(holder);
            core_.store(work_.tables.totals + holder, rows);
            fits = fits && rows <= work_.layout.capacity().value();
        }
        return fits;
    }

private:
    std::uint64_t walk_holder(std::int32_t holder) {
        std::uint64_t next = 0;
        const std::int32_t first = work_.placement.first_expert(holder);
        for (std::int32_t e = first; e < work_.placement.first_expert(holder + 1); ++e) {
            next = expert_rows_.next(walk_expert(e, next, holder == core_.my_pe() ? (e - first) * ranks_ : -1));
        }
        return next;
    }

    // The row at which that rank's rows begin, if those of the ranks before end at `next`.
    [[nodiscard]] std::uint64_t place(std::uint64_t first, std::int32_t rank, std::uint64_t next) const {
        return expert_rows_.is_fixed() ? first + expert_rows_.of_rank(rank) : next;
    }

    // first: of the expert. entry: of the expert in the tables of this PE; -1: another PE holds it. Returns the row
    // behind the expert's.
    std::uint64_t walk_expert(std::int32_t expert, std::uint64_t first, std::int32_t entry) {
        std::uint64_t next = first;
        for (std::int32_t rank = 0; rank < ranks_; ++rank) {
            const std::uint64_t rows = count(rank, expert);
            next = place(first, rank, next);
            if (rank == core_.my_pe()) core_.store(work_.tables.starts + expert, next);
            if (entry >= 0) {
                core_.store(work_.tables.offset_table + entry + rank, static_cast<std::int32_t>(next));
                core_.store(work_.tables.length_table + entry + rank, static_cast<std::int32_t>(rows));
            }
            next += rows;
        }
        return place(first, ranks_, next);
    }

    std::uint64_t count(std::int32_t rank, std::int32_t expert) {
        std::byte* record = work_.region + work_.layout.record(work_.epoch, rank).value();
        return static_cast<std::uint64_t>(core_.load(DispatchWork::counts_of(record) + expert));
    }

    Core& core_;
    const DispatchWork& work_;
    ExpertRows expert_rows_ = work_.layout.expert_rows();
    std::int32_t ranks_;
};

// Whether the record rejects the call, or is of a call with other places than this rank's.
bool refuses(Core& core, const DispatchWork& work, std::int32_t rank) {
    const std::byte* record = work.region + work.layout.record(work.epoch, rank).value();
    if (core.load(reinterpret_cast<const std::int32_t*>(record)) != 0) return true;
    for (std::size_t at = offsetof(DispatchRecord, kind); at < sizeof(DispatchRecord); at += sizeof(std::uint64_t)) {
        if (core.load(reinterpret_cast<const std::uint64_t*>(record + at)) !=
            core.load(reinterpret_cast<const std::uint64_t*>(work.tables.record + at)))
            return true;
    }
    return false;
}

bool any_rank_refuses(Core& core, const DispatchWork& work) {
    for (std::int32_t rank = 0; rank < work.layout.ranks(); ++rank) {
        if (refuses(core, work, rank)) return true;
    }
    return false;
}

void sort_choices(Core& core, const DispatchWork& work) {
    if (work.cached) return;
    count_choices(core, work);
    sum_counts(core, work);
    place_choices(core, work);
    core.dcci(work.tables.order, sizeof(std::uint32_t) * work.choices);
    core.dcci(work.tables.begins, sizeof(std::uint64_t) * static_cast<std::size_t>(work.layout.experts() + 1));
    if (work.layout.expert_rows().is_fixed()) set_fixed_starts(core, work);
}

void make_tables(Core& core, const DispatchWork& work) {
    const auto ranks = static_cast<std::size_t>(work.layout.ranks());
    core.dcci(work.region + work.layout.record(work.epoch, 0).value(), work.layout.record_bytes().value() * ranks);
    const bool refused = any_rank_refuses(core, work);
    const bool fits = work.cached || TableWalk(core, work).walk();
    core.store(work.tables.accepted, !refused && fits ? 1 : 0);
    core.dcci(work.tables.accepted);
    if (work.cached) return;
    core.dcci(work.tables.starts, sizeof(std::uint64_t) * static_cast<std::size_t>(work.layout.experts()));
    core.dcci(work.tables.totals, sizeof(std::uint64_t) * ranks);
    const auto local = static_cast<std::size_t>(work.placement.local_experts(core.my_pe()));
    if (local == 0) return;
    core.dcci(work.tables.offset_table, sizeof(std::int32_t) * local * ranks);
    core.dcci(work.tables.length_table, sizeof(std::int32_t) * local * ranks);
}

// Rows: copies the rows of this rank for one holder of experts from `in` to the holder's x.

using npu::Core;
using npu::Pipe;

// The copy routes. Each puts rows one after another, starting at `target`.
class DirectPuts {
public:
    DirectPuts(Core& core, const DispatchWork& work, std::byte* target, std::int32_t holder)
        : core_(core), work_(work), target_(target), holder_(holder) {}

    void put(std::uint32_t slot) {
        const std::size_t row = work_.layout.row_bytes().value();
        core_.put(target_, work_.row_of(slot), row, holder_);
        target_ += row;
    }
    static void finish() {}

private:
    Core& core_;
    const DispatchWork& work_;
    std::byte* target_;
    std::int32_t holder_;
};

class StreamingPuts {
public:
    StreamingPuts(Core& core, const DispatchWork& work, std::byte* target, std::int32_t holder)
        : work_(work), remote_(core.remote(target, holder)) {}

    void put(std::uint32_t slot) {
        const std::size_t row = work_.layout.row_bytes().value();
        copy_nontemporal(remote_, work_.row_of(slot), row);
        remote_ += row;
    }
    // Streaming stores are unordered: even a release store of the signal could overtake them.
    static void finish() { nontemporal_fence(); }

private:
    const DispatchWork& work_;
    std::byte* remote_;
};

// Rows of one expert are contiguous at its holder, so one copy writes many short rows.
class StagedPuts {
public:
    StagedPuts(Core& core, const DispatchWork& work, std::byte* target, std::int32_t holder)
        : work_(work), pack_(core, work.in, work.layout.row_bytes(), core.remote(target, holder)) {}

    void put(std::uint32_t slot) { pack_.put({Rows{slot / static_cast<std::uint32_t>(work_.top_k)}, Rows{1}}); }
    void finish() { pack_.finish(); }

private:
    const DispatchWork& work_;
    StagedPack pack_;
};

struct Fragments {
    std::uint64_t begin = 0;  // in `order`
    std::uint64_t end = 0;
    std::uint64_t start = 0;  // in x of the holder
};

template <class Route>
void put_expert(Core& core, const DispatchWork& work, std::int32_t holder, const Fragments& f) {
    const std::size_t mark = core.ub_used();
    {
        Route route(core, work, work.x() + (work.layout.row_bytes() * f.start).value(), holder);
        for (std::uint64_t i = f.begin; i < f.end; ++i) route.put(core.load(work.tables.order + i));
        route.finish();
    }
    core.ub_release(mark);
}

void put_by_route(Core& core, const DispatchWork& work, std::int32_t holder, const Fragments& f) {
    switch (work.route) {
        case CopyRoute::staged: return put_expert<StagedPuts>(core, work, holder, f);
        case CopyRoute::direct: return put_expert<DirectPuts>(core, work, holder, f);
        case CopyRoute::streaming: return put_expert<StreamingPuts>(core, work, holder, f);
    }
}

void put_slots(Core& core, const DispatchWork& work, std::int32_t holder, const Fragments& f) {
    if (work.slots_to_send() == nullptr) return;
    core.put(work.slots() + f.start, work.slots_to_send() + f.begin, f.end - f.begin, holder);
    if (work.row_choices == nullptr) return;
    const std::uint64_t each = work.layout.choices_per_row();
    core.put(work.choices_here() + f.start * each, work.row_choices + f.begin * each, (f.end - f.begin) * each, holder);
}

void put_rows(Core& core, const DispatchWork& work, std::int32_t holder) {
    for (std::int32_t e = work.placement.first_expert(holder); e < work.placement.first_expert(holder + 1); ++e) {
        const Fragments f{core.load(work.tables.begins + e), core.load(work.tables.begins + e + 1),
                          core.load(work.tables.starts + e)};
        if (f.begin == f.end) continue;
        put_by_route(core, work, holder, f);
        put_slots(core, work, holder, f);
    }
    core.set_flag<Pipe::copy_out, Pipe::scalar>(0);
    core.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
}

using npu::Core;
using npu::KernelError;

// Calls visit(rank) for the ranks of this core.
template <class Visit>
void for_own_ranks(Core& core, const DispatchWork& work, const Visit& visit) {
    const std::int32_t ranks = work.layout.ranks();
    for (std::int32_t i = core.index(); i < ranks; i += core.count()) visit((core.my_pe() + 1 + i) % ranks);
}

void put_record(Core& core, const DispatchWork& work, Bytes signal, std::int32_t rank) {
    const std::uint64_t record = work.layout.record(work.epoch, core.my_pe()).value();
    core.put_signal(work.region + record, work.tables.record, work.record_bytes(), work.word(signal), work.epoch, rank);
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
    for_own_ranks(core, work, [&](std::int32_t rank) {
        if (work.is_host_served(rank)) return;
        put_rows(core, work, rank);
        core.signal_set_on(work.word(work.layout.arrived(core.my_pe())), work.epoch, rank);
    });
}

void moe_dispatch_await(Core& core, const DispatchWork& work) {
    for_own_ranks(core, work, [&](std::int32_t rank) { await(core, work, work.layout.arrived(rank), rank, "rows"); });
}

void moe_dispatch_send_fixed(Core& core, const DispatchWork& work) {
    for_own_ranks(core, work, [&](std::int32_t rank) {
        if (work.is_host_served(rank)) return;
        if (work.accepts) put_rows(core, work, rank);
        put_record(core, work, work.layout.arrived(core.my_pe()), rank);
    });
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
