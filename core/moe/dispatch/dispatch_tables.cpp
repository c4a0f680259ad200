#include "core/moe/dispatch/dispatch_tables.hpp"

#include <cstddef>

namespace npushmem::moe {
namespace {

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

// Turns the counts into where each expert begins, and writes them into the record.
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

// Puts each choice behind the last one of its expert; `starts` serves as the cursors.
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

// The walk over everybody's counts, expert after expert and inside that rank after rank, which is the order of x.
class TableWalk {
public:
    TableWalk(Core& core, const DispatchWork& work) : core_(core), work_(work), ranks_(work.layout.ranks()) {}

    // Whether all rows of every rank fit.
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
            next = holder == core_.my_pe() ? walk_own(e, e - first, next) : walk_expert(e, next);
        }
        return next;
    }

    std::uint64_t walk_expert(std::int32_t expert, std::uint64_t next) {
        for (std::int32_t rank = 0; rank < ranks_; ++rank) {
            if (rank == core_.my_pe()) core_.store(work_.tables.starts + expert, next);
            next += count(rank, expert);
        }
        return next;
    }

    std::uint64_t walk_own(std::int32_t expert, std::int32_t local, std::uint64_t next) {
        const std::size_t entry = static_cast<std::size_t>(local) * static_cast<std::size_t>(ranks_);
        for (std::int32_t rank = 0; rank < ranks_; ++rank) {
            const std::uint64_t rows = count(rank, expert);
            if (rank == core_.my_pe()) core_.store(work_.tables.starts + expert, next);
            core_.store(work_.tables.offset_table + entry + rank, static_cast<std::int32_t>(next));
            core_.store(work_.tables.length_table + entry + rank, static_cast<std::int32_t>(rows));
            next += rows;
        }
        return next;
    }

    std::uint64_t count(std::int32_t rank, std::int32_t expert) {
        std::byte* record = work_.region + work_.layout.record(work_.epoch, rank).value();
        return static_cast<std::uint64_t>(core_.load(DispatchWork::counts_of(record) + expert));
    }

    Core& core_;
    const DispatchWork& work_;
    std::int32_t ranks_;
};

bool any_rank_refuses(Core& core, const DispatchWork& work) {
    for (std::int32_t rank = 0; rank < work.layout.ranks(); ++rank) {
        const std::byte* record = work.region + work.layout.record(work.epoch, rank).value();
        if (core.load(reinterpret_cast<const std::int32_t*>(record)) != 0) return true;
    }
    return false;
}

}  // namespace

void sort_choices(Core& core, const DispatchWork& work) {
    count_choices(core, work);
    sum_counts(core, work);
    place_choices(core, work);
    core.dcci(work.tables.order, sizeof(std::uint32_t) * work.choices);
    core.dcci(work.tables.begins, sizeof(std::uint64_t) * static_cast<std::size_t>(work.layout.experts() + 1));
}

void make_tables(Core& core, const DispatchWork& work) {
    const auto ranks = static_cast<std::size_t>(work.layout.ranks());
    core.dcci(work.region + work.layout.record(work.epoch, 0).value(), work.layout.record_bytes().value() * ranks);
    const bool refused = any_rank_refuses(core, work);
    const bool fits = TableWalk(core, work).walk();
    core.store(work.tables.accepted, !refused && fits ? 1 : 0);
    core.dcci(work.tables.accepted);
    core.dcci(work.tables.starts, sizeof(std::uint64_t) * static_cast<std::size_t>(work.layout.experts()));
    core.dcci(work.tables.totals, sizeof(std::uint64_t) * ranks);
    const auto local = static_cast<std::size_t>(work.placement.local_experts(core.my_pe()));
    if (local == 0) return;
    core.dcci(work.tables.offset_table, sizeof(std::int32_t) * local * ranks);
    core.dcci(work.tables.length_table, sizeof(std::int32_t) * local * ranks);
}

}  // namespace npushmem::moe
