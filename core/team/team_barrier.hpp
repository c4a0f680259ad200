// The barrier of a team other than the world: over mapped memory if the CPU sees every member's state, otherwise over
// the transports.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/liveness.hpp"
#include "core/base/parking.hpp"
#include "core/base/parse.hpp"
#include "core/coll/barrier/barrier.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"
#include "core/coll/barrier/signal_fabric.hpp"
#include "core/memory/control_block.hpp"
#include "core/remote/remote_access.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// The members of a team, by index: PEs at equal distances, which need no memory, or a list of distinct PEs, which
// copies share. Immutable.
class Members {
public:
    Members() = default;
    // PEs at equal distances; the range has no table.
    Members(const PeRange& strided) : range_(strided) {}  // implicit: most teams are such a range
    // Distinct PEs, at least one. PEs at equal distances become a range without a table.
    static Members listed(std::vector<int> pes);

    // For waits and iteration; valid while this object or a copy lives.
    [[nodiscard]] const PeRange& range() const { return range_; }
    [[nodiscard]] int count() const { return range_.count; }
    [[nodiscard]] int at(int index) const { return range_.at(index); }
    // Returns the index of a world PE; -1 when it is not a member.
    [[nodiscard]] int index_of(int world_pe) const;
    // Returns the members with index `start`, `start` + `stride`, ..., `count` of them.
    [[nodiscard]] Members every(int start, int stride, int count) const;
    // Returns equal values for the same PEs in the same order; 0 for PEs at equal distances.
    [[nodiscard]] std::uint32_t list_hash() const;
    // "PEs 1 to 7, every 2", "PEs 5, 0, 3"
    [[nodiscard]] std::string text() const;

private:
    struct List {
        std::vector<int> pes;
        std::vector<std::pair<int, int>> places;  // a PE and its index, by PE
    };

    PeRange range_;
    std::shared_ptr<const List> list_;  // range_.table points into it; null without a table
};

// Returns where a PE's slice is mapped; null where it is not.
using SliceLookup = std::function<std::byte*(int pe)>;

class RemoteSignals final : public barrier::SignalFabric {
public:
    // `own` is this PE's state; `offset` is the offset of every member's state in its slice.
    RemoteSignals(SliceLookup slice_of, RemoteAccess& remote, std::byte* own, std::uint64_t offset, PeRange members,
                  int my_pe, const Waiter& waiter, Duration timeout)
        : slice_of_(std::move(slice_of)),
          remote_(remote),
          own_(own),
          offset_(offset),
          members_(members),
          my_pe_(my_pe),
          waiter_(waiter),
          timeout_(timeout) {}

    Code signal(int member, int slot, std::uint64_t value) override;
    Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) override;

    Code wait(const barrier::AwaitedSlot& awaited, std::uint64_t value) override;
    Code complete() override;
    [[nodiscard]] barrier::FabricFailure failure() const override { return failure_; }

    // Returns why an operation other than a wait failed. Permanent: a failed barrier is not used again.
    [[nodiscard]] const Status& cause() const { return cause_; }

private:
    // Returns the member's state, if the CPU sees it.
    [[nodiscard]] std::byte* mapped_state(int pe) const {
        std::byte* const slice = slice_of_(pe);
        return slice != nullptr ? slice + offset_ : nullptr;
    }
    // The same, and always the own one; not for atomics of several writers.
    [[nodiscard]] std::byte* visible_state(int pe) const { return pe == my_pe_ ? own_ : mapped_state(pe); }
    Code update(int pe, int slot, std::uint8_t operation, std::uint64_t value, std::uint64_t* before);
    Code load_slot(int pe, int slot, std::uint64_t& value);
    Code record_failure(Status status);
    bool progress_ok() { return record_failure(remote_.progress()) == Code::ok; }

    SliceLookup slice_of_;
    RemoteAccess& remote_;
    std::byte* own_;
    std::uint64_t offset_;
    PeRange members_;
    int my_pe_;
    const Waiter& waiter_;
    Duration timeout_;
    barrier::FabricFailure failure_;
    Status cause_;
};

// Counts a team's barriers and times some of them: their duration, and the last PE of this host to enter. Reading the
// clock twice takes a third of a short barrier's time, so one barrier in `every` is timed, the same one on all PEs.
// After it, one PE, in turn, reads the others' times of entry. Clocks of different hosts are not compared.
class BarrierStatistics {
public:
    // `counts` are those of the members on this host, in an order equal on all of them; `own` is the caller's index
    // there. They must be zero before the first barrier and outlive this, as must `os`.
    BarrierStatistics(std::vector<BarrierCounters*> counts, std::size_t own, std::uint64_t every, WaitOs& os)
        : counts_(std::move(counts)), own_(own), every_(every), os_(os) {}

    // Runs `run_barrier` as the barrier of this number (1 for the first), equal on all members.
    template <class Run>
    Code timed_run(std::uint64_t number, Run&& run_barrier) {
        raise(mine().barriers, 1);
        if (number % every_ != 0) return run_barrier();
        const std::int64_t entered = enter(number / every_);
        const Code code = run_barrier();
        if (code == Code::ok) leave(number / every_, entered);
        return code;
    }

private:
    [[nodiscard]] BarrierCounters& mine() const { return *counts_[own_]; }
    // For counters with one writer.
    static void raise(std::atomic<std::uint64_t>& counter, std::uint64_t by) {
        counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    }
    std::int64_t enter(std::uint64_t timed);
    void leave(std::uint64_t timed, std::int64_t entered);
    void find_last_entered(std::uint64_t timed) const;

    std::vector<BarrierCounters*> counts_;
    std::size_t own_;
    std::uint64_t every_;
    WaitOs& os_;
};

class TeamBarrier {
public:
    struct Options {
        Members members;
        int my_pe;            // a world PE
        int index;            // of that PE among the members
        std::uint64_t state;  // offset of zeroed memory in each member's slice
        bool mapped;          // by all members; then `states` locates the states
        barrier::MemberStates states;
    };

    // All references outlive the barrier.
    TeamBarrier(const Options& options, SliceLookup slice_of, RemoteAccess& remote, std::byte* own_slice,
                const Waiter& waiter, Duration timeout);
    TeamBarrier(const TeamBarrier&) = delete;
    TeamBarrier& operator=(const TeamBarrier&) = delete;

    Code run(const barrier::Plan& plan) {
        if (mapped_) [[likely]]
            return mapped_->run(plan);
        return tabled_ ? tabled_->run(plan) : remote_->run(plan);
    }
    // Describes the failure of a run; `team` is its name for the message.
    [[nodiscard]] Status failure(Code code, std::string_view team) const;

private:
    using Mapped = barrier::Barrier<barrier::MappedFabric<barrier::StridedStates>>;
    using Tabled = barrier::Barrier<barrier::MappedFabric<barrier::TabledStates>>;
    using Remote = barrier::Barrier<barrier::SignalFabricRef>;

    Members members_;  // the barriers' ranges point into it
    std::unique_ptr<Mapped> mapped_;
    std::unique_ptr<Tabled> tabled_;
    std::unique_ptr<RemoteSignals> signals_;
    std::unique_ptr<Remote> remote_;
};

}  // namespace npushmem
