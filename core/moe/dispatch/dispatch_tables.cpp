// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/dispatch/dispatch_tables.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace npushmem::moe {
namespace {

using npu::Core;
using npu::Pipe;

void await_copies_in(Core& core) {
    core.set_flag<Pipe::copy_in, Pipe::scalar>(0);
    core.wait_flag<Pipe::copy_in, Pipe::scalar>(0);
}

// An array in global memory. `staged`: a core works on it in its unified buffer, until release_tables(). A device's
// scalar accesses to global memory take as long as a copy of many words.
template <class T, bool staged>
class WorkTable {
public:
    // `count`: elements of the array.
    WorkTable(Core& core, T* memory, std::size_t count) : core_(core), memory_(memory), count_(count) {
        if constexpr (staged) view_ = core.ub_alloc<Element>(padded(count));
    }

    // Bytes of the unified buffer.
    static std::size_t ub_bytes(std::size_t count) { return padded(count) * sizeof(T); }

    // Before the first get() of an element that was not set. The contents are there after await_copies_in().
    void read() {
        if constexpr (staged)
            if (count_ > 0) core_.data_copy_pad(view_, npu::gm(memory_, count_), shape(count_));
    }
    [[nodiscard]] auto get(std::size_t at) {
        if constexpr (staged)
            return core_.get(view_, at);
        else
            return core_.load(memory_ + at);
    }
    void set(std::size_t at, T value) {
        if constexpr (staged)
            core_.set(view_, at, value);
        else
            core_.store(memory_ + at, value);
    }
    // Writes the first `count` elements, all of which have been read or set, to memory. They are there after
    // release_tables().
    void write(std::size_t count) {
        if (count == 0) return;
        if constexpr (staged) {
            core_.set_flag<Pipe::scalar, Pipe::copy_out>(0);
            core_.wait_flag<Pipe::scalar, Pipe::copy_out>(0);
            core_.data_copy_pad(npu::gm(memory_, count), view_, shape(count));
        } else {
            core_.dcci(memory_, count * sizeof(T));
        }
    }
    void write() { write(count_); }

private:
    using Element = std::remove_const_t<T>;
    static std::size_t padded(std::size_t count) {
        return rounded_up(std::max<std::size_t>(count, 1), npu::ub_alignment / sizeof(T));
    }
    static npu::PadShape shape(std::size_t count) { return {1, count * sizeof(T), 0, 0}; }

    Core& core_;
    T* memory_;
    std::size_t count_;
    npu::ub_view<Element> view_;
};

// Waits until the tables are in memory, and frees the part of the unified buffer that they used.
void release_tables(Core& core, std::size_t mark) {
    core.pipe_barrier<Pipe::all>();
    core.set_flag<Pipe::copy_out, Pipe::scalar>(0);
    core.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
    core.ub_release(mark);
}

std::size_t number(std::int32_t value) { return static_cast<std::size_t>(value); }

// Sorts the choices by expert, and counts them.
template <bool staged>
class ChoiceSort {
public:
    ChoiceSort(Core& core, const DispatchWork& work)
        : core_(core),
          work_(work),
          experts_(number(work.layout.experts())),
          begins_(core, work.tables.begins, experts_ + 1),
          cursors_(core, work.tables.starts, experts_),
          counts_(core, DispatchWork::counts_of(work.tables.record), experts_),
          ids_(core, work.experts, work.choices),
          order_(core, work.tables.order, work.choices) {
        ids_.read();
        if constexpr (staged) await_copies_in(core);
    }

    static std::size_t ub_bytes(const DispatchWork& work) {
        const std::size_t experts = number(work.layout.experts());
        return WorkTable<std::uint64_t, true>::ub_bytes(experts + 1) +
               WorkTable<std::uint64_t, true>::ub_bytes(experts) + WorkTable<std::int32_t, true>::ub_bytes(experts) +
               2 * WorkTable<std::int32_t, true>::ub_bytes(work.choices);
    }

    void run() {
        count_choices();
        sum_counts();
        place_choices();
        begins_.write();
        counts_.write();
        order_.write(begins_.get(experts_));
        if (work_.layout.expert_rows().is_fixed()) {
            set_fixed_starts();
            cursors_.write();
        }
    }

private:
    // The loops work on copies of the tables' addresses, which stay in registers.

    // Adds one to begins[id + 1] for every choice of expert id.
    void count_choices() {
        auto begins = begins_;
        auto ids = ids_;
        for (std::size_t expert = 0; expert <= experts_; ++expert) begins.set(expert, 0);
        for (std::size_t slot = 0; slot < work_.choices; ++slot) {
            const std::int32_t id = ids.get(slot);
            if (id >= 0) begins.set(number(id) + 1, begins.get(number(id) + 1) + 1);
        }
    }

    // Computes from the counts where each expert begins, and writes the counts into the record.
    void sum_counts() {
        auto begins = begins_;
        auto counts = counts_;
        for (std::size_t expert = 0; expert < experts_; ++expert) {
            const std::uint64_t count = begins.get(expert + 1);
            counts.set(expert, static_cast<std::int32_t>(count));
            begins.set(expert + 1, begins.get(expert) + count);
        }
    }

    // Appends each choice to its expert's choices.
    void place_choices() {
        auto begins = begins_;
        auto cursors = cursors_;
        auto ids = ids_;
        auto order = order_;
        for (std::size_t e = 0; e < experts_; ++e) cursors.set(e, begins.get(e));
        for (std::size_t slot = 0; slot < work_.choices; ++slot) {
            const std::int32_t id = ids.get(slot);
            if (id < 0) continue;
            const std::uint64_t at = cursors.get(number(id));
            order.set(at, static_cast<std::uint32_t>(slot));
            cursors.set(number(id), at + 1);
        }
    }

    // Fixed slots: where the rows of this rank begin at each expert does not depend on the counts.
    void set_fixed_starts() {
        const ExpertRows& rows = work_.layout.expert_rows();
        for (std::int32_t holder = 0; holder < work_.layout.ranks(); ++holder) {
            std::uint64_t first = 0;
            for (std::int32_t e = work_.placement.first_expert(holder); e < work_.placement.first_expert(holder + 1);
                 ++e) {
                cursors_.set(number(e), first + rows.of_rank(core_.my_pe()));
                first = rows.next_fixed(first, work_.layout.ranks());
            }
        }
    }

    Core& core_;
    const DispatchWork& work_;
    std::size_t experts_;
    WorkTable<std::uint64_t, staged> begins_;
    WorkTable<std::uint64_t, staged> cursors_;  // the starts
    WorkTable<std::int32_t, staged> counts_;
    WorkTable<const std::int32_t, staged> ids_;
    WorkTable<std::uint32_t, staged> order_;
};

// The counts of all ranks, of all experts.
template <bool staged>
class AllCounts {
public:
    AllCounts(Core& core, const DispatchWork& work) : core_(core), first_(counts_of_first(work)) {
        const npu::PadShape shape = shape_of(work);
        step_ = shape.gm_step() / sizeof(std::int32_t);
        if constexpr (staged) {
            step_ = shape.ub_step() / sizeof(std::int32_t);
            view_ = core.ub_alloc<std::int32_t>(shape.ub_span() / sizeof(std::int32_t));
            core.data_copy_pad(view_, npu::gm(first_, shape.gm_span() / sizeof(std::int32_t)), shape);
            await_copies_in(core);
        }
    }

    static std::size_t ub_bytes(const DispatchWork& work) { return shape_of(work).ub_span(); }

    [[nodiscard]] std::uint64_t get(std::int32_t rank, std::int32_t expert) {
        const std::size_t at = number(rank) * step_ + number(expert);
        if constexpr (staged)
            return static_cast<std::uint64_t>(core_.get(view_, at));
        else
            return static_cast<std::uint64_t>(core_.load(first_ + at));
    }

private:
    static const std::int32_t* counts_of_first(const DispatchWork& work) {
        return DispatchWork::counts_of(work.region + work.layout.record(work.epoch, 0).value());
    }
    static npu::PadShape shape_of(const DispatchWork& work) {
        const std::size_t bytes = number(work.layout.experts()) * sizeof(std::int32_t);
        return {number(work.layout.ranks()), bytes, work.layout.record_bytes().value() - bytes, 0};
    }

    Core& core_;
    const std::int32_t* first_;
    std::size_t step_ = 0;  // from rank to rank
    npu::ub_view<std::int32_t> view_;
};

// Iterates over the counts of all ranks, expert after expert and inside an expert rank after rank: the order of x.
template <bool staged>
class TableWalk {
public:
    TableWalk(Core& core, const DispatchWork& work)
        : core_(core),
          work_(work),
          ranks_(work.layout.ranks()),
          entries_(entries_of(core, work)),
          counts_(core, work),
          starts_(core, work.tables.starts, number(work.layout.experts())),
          offsets_(core, work.tables.offset_table, entries_),
          lengths_(core, work.tables.length_table, entries_) {}

    static std::size_t ub_bytes(Core& core, const DispatchWork& work) {
        return AllCounts<true>::ub_bytes(work) +
               WorkTable<std::uint64_t, true>::ub_bytes(number(work.layout.experts())) +
               2 * WorkTable<std::int32_t, true>::ub_bytes(entries_of(core, work));
    }

    // Whether the rows for every rank fit its capacity.
    [[gnu::always_inline]] bool walk() {
        bool fits = true;
        for (std::int32_t holder = 0; holder < ranks_; ++holder) {
            const std::uint64_t rows = walk_holder(holder);
            core_.store(work_.tables.totals + holder, rows);
            fits = fits && rows <= work_.layout.capacity().value();
        }
        core_.dcci(work_.tables.totals, sizeof(std::uint64_t) * number(ranks_));
        starts_.write();
        offsets_.write();
        lengths_.write();
        return fits;
    }

private:
    // Of the tables of this PE.
    static std::size_t entries_of(const Core& core, const DispatchWork& work) {
        return number(work.placement.local_experts(core.my_pe())) * number(work.layout.ranks());
    }
    // Inlined, so that the addresses of the tables stay in registers.
    [[gnu::always_inline]] std::uint64_t walk_holder(std::int32_t holder) {
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
    [[gnu::always_inline]] std::uint64_t walk_expert(std::int32_t expert, std::uint64_t first, std::int32_t entry) {
        std::uint64_t next = first;
        for (std::int32_t rank = 0; rank < ranks_; ++rank) {
            const std::uint64_t rows = counts_.get(rank, expert);
            next = place(first, rank, next);
            if (rank == core_.my_pe()) starts_.set(number(expert), next);
            if (entry >= 0) {
                offsets_.set(number(entry + rank), static_cast<std::int32_t>(next));
                lengths_.set(number(entry + rank), static_cast<std::int32_t>(rows));
            }
            next += rows;
        }
        return place(first, ranks_, next);
    }

    Core& core_;
    const DispatchWork& work_;
    ExpertRows expert_rows_ = work_.layout.expert_rows();
    std::int32_t ranks_;
    std::size_t entries_;
    AllCounts<staged> counts_;
    WorkTable<std::uint64_t, staged> starts_;
    WorkTable<std::int32_t, staged> offsets_;
    WorkTable<std::int32_t, staged> lengths_;
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

bool has_room(Core& core, const DispatchWork& work, std::size_t bytes) {
    return work.route == CopyRoute::staged && bytes <= core.ub_free();
}

bool make_places(Core& core, const DispatchWork& work) {
    const std::size_t mark = core.ub_used();
    const bool is_staged = number(work.layout.ranks()) <= npu::max_copy_blocks &&
                           has_room(core, work, TableWalk<true>::ub_bytes(core, work));
    if (!is_staged) return TableWalk<false>(core, work).walk();
    const bool fits = TableWalk<true>(core, work).walk();
    release_tables(core, mark);
    return fits;
}

}  // namespace

void sort_choices(Core& core, const DispatchWork& work) {
    if (work.cached) return;
    const std::size_t mark = core.ub_used();
    if (!has_room(core, work, ChoiceSort<true>::ub_bytes(work))) return ChoiceSort<false>(core, work).run();
    ChoiceSort<true>(core, work).run();
    release_tables(core, mark);
}

void make_tables(Core& core, const DispatchWork& work) {
    core.dcci(work.region + work.layout.record(work.epoch, 0).value(),
              work.layout.record_bytes().value() * number(work.layout.ranks()));
    const bool refused = any_rank_refuses(core, work);
    const bool fits = work.cached || make_places(core, work);
    core.store(work.tables.accepted, !refused && fits ? 1 : 0);
    core.dcci(work.tables.accepted);
}

}  // namespace npushmem::moe
