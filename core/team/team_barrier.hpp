// SPDX-License-Identifier: BSD-3-Clause
// The barrier of a team, its statistics, and its fabric for members that are not mapped.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/wait.hpp"
#include "core/coll/barrier/barrier.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"
#include "core/coll/barrier/signal_fabric.hpp"
#include "core/coll/collectives_library.hpp"
#include "core/memory/control_block.hpp"
#include "core/remote/remote_access.hpp"
#include "core/team/members.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Signals of a team's barrier over the transports; stores where the CPU sees the member's state.
class RemoteSignals final : public barrier::SignalFabric {
public:
    // `resources` and `waiter` outlive this. `offset` is that of every member's state in its slice.
    RemoteSignals(const TeamResources& resources, std::uint64_t offset, PeRange members, const Waiter& waiter)
        : resources_(resources),
          offset_(offset),
          members_(members),
          pes_(listed_unless_all(members, resources.npes)),
          waiter_(waiter) {}

    Code signal(int member, int slot, std::uint64_t value) override;
    Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) override;

    Code wait(const barrier::AwaitedSlot& awaited, std::uint64_t value) override;
    Code complete() override;
    [[nodiscard]] barrier::FabricFailure failure() const override { return failure_; }

    // Returns why an operation other than a wait failed. Permanent: a failed barrier is not used again.
    [[nodiscard]] const Status& cause() const { return cause_; }

private:
    [[nodiscard]] std::uint64_t offset_of(int slot) const {
        return offset_ + static_cast<std::uint64_t>(slot) * barrier::line_bytes;
    }
    [[nodiscard]] std::atomic_ref<std::uint64_t> slot_in(std::byte* slice, int slot) const {
        return barrier::slot_at(slice + offset_, slot);
    }
    void wake_sleepers(std::byte* slice, int slot) const;
    Code update(int pe, int slot, std::uint8_t operation, std::uint64_t value, std::uint64_t* before);
    Code load_slot(int pe, int slot, std::uint64_t& value);
    Code record_failure(Status status);
    bool progress_ok() { return record_failure(resources_.remote.progress()) == Code::ok; }

    const TeamResources& resources_;
    std::uint64_t offset_;
    PeRange members_;
    std::vector<int> pes_;  // see listed_unless_all()
    const Waiter& waiter_;
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

// The barrier of one team: over mapped memory if every member maps every member, otherwise over the transports. One
// thread at a time; any thread may read the number of barriers.
class TeamBarrier {
public:
    // The barrier's memory, as offsets in every member's slice.
    struct Offsets {
        std::uint64_t state;    // barrier::state_bytes, zero before the first barrier
        std::uint64_t entered;  // std::atomic<std::uint64_t>: the number of the last barrier that the member entered
        std::uint64_t counts;   // BarrierCounters
    };

    // All references outlive the barrier. `team` is the team's name in messages. `hosts` is the distribution of all PEs
    // over hosts, for the world; null: the members count as one host.
    TeamBarrier(const TeamResources& resources, const MemberMemory& memory, const Offsets& offsets,
                const Waiter& waiter, const std::string& team, const HostLayout* hosts);
    TeamBarrier(const TeamBarrier&) = delete;
    TeamBarrier& operator=(const TeamBarrier&) = delete;

    // By the default plan, or by another library that serves the team's barriers.
    Status sync() { return run<true>(default_plan_, default_mapped_); }
    // By this plan; all members pass the same one.
    Status sync(const barrier::Plan& plan) { return run<false>(plan, mapped_.get()); }
    // Leaves sync() to the library, if it serves barriers; null: it does not. Equal on all members.
    void use_library(coll::LibraryTeam* library) {
        library_ = library != nullptr && library->has_barrier() ? library : nullptr;
        default_mapped_ = library_ == nullptr ? mapped_.get() : nullptr;
    }
    [[nodiscard]] const barrier::Plan& default_plan() const { return default_plan_; }
    // Replaces the plan that the configuration chose.
    void set_default_plan(const barrier::Plan& plan) {
        default_plan_ = plan;
        plan_was_set_ = true;
        use_library(nullptr);
    }

    // Resolves this text, as in NPUSHMEM_BARRIER_ALGO, for this team.
    [[nodiscard]] Result<barrier::Choice> choose(std::string_view text) const {
        return barrier::choose(text, selection_input_, resources_.tuning);
    }
    [[nodiscard]] const barrier::BarrierSelectionInput& selection_input() const { return selection_input_; }
    // Returns the default plan with its reason.
    [[nodiscard]] barrier::Choice default_choice() const;

    // Returns how many barriers this PE has left; equal on all members between two barriers.
    [[nodiscard]] std::uint64_t barriers() const { return barriers_.load(std::memory_order_relaxed); }
    // Returns the counts of this PE.
    [[nodiscard]] const BarrierCounters& counts() const { return *counts_of(memory_.own_index()); }
    // Stops counting barriers.
    void disable_statistics() { statistics_.reset(); }

private:
    using Mapped = barrier::Barrier<barrier::MappedFabric<barrier::StridedStates>>;
    using Tabled = barrier::Barrier<barrier::MappedFabric<barrier::TabledStates>>;
    using Remote = barrier::Barrier<barrier::SignalFabricRef>;

    // `mapped` null: the library, if `MayUseLibrary`, or run_unstrided() has another way.
    template <bool MayUseLibrary>
    Status run(const barrier::Plan& plan, Mapped* mapped) {
        // Relaxed: read only to name missing members, and by this PE's threads to decide whether a finalized PE will
        // enter the next barrier.
        const std::uint64_t number = barriers_.load(std::memory_order_relaxed) + 1;
        entered_->store(number, std::memory_order_relaxed);
        const auto run_barrier = [&] {
            if (mapped != nullptr) [[likely]]
                return mapped->run(plan);
            return MayUseLibrary && library_ != nullptr ? Code::again : run_unstrided(plan);
        };
        const Code code = statistics_ ? statistics_->timed_run(number, run_barrier) : run_barrier();
        if (code != Code::ok) [[unlikely]]
            return code == Code::again ? run_library() : failure(code);
        barriers_.store(number, std::memory_order_relaxed);
        return {};
    }
    Status run_library();
    void set_nodes(const HostLayout& hosts);
    void make_fabric(const Waiter& waiter);
    void enable_statistics();
    [[nodiscard]] barrier::Choice first_choice() const;
    [[nodiscard]] BarrierCounters* counts_of(int member) const {
        return reinterpret_cast<BarrierCounters*>(memory_.address(member, offsets_.counts));
    }
    Code run_unstrided(const barrier::Plan& plan);
    [[nodiscard]] Status failure(Code code) const;
    [[nodiscard]] std::string missing_members() const;

    const TeamResources& resources_;
    const MemberMemory& memory_;
    Offsets offsets_;
    const std::string& team_;
    barrier::BarrierSelectionInput selection_input_;
    barrier::Plan default_plan_;
    bool plan_was_set_ = false;  // by set_default_plan
    std::atomic<std::uint64_t> barriers_{0};
    std::atomic<std::uint64_t>* entered_;  // the own one
    // The fast path reads these two and the three members above.
    Mapped* default_mapped_ = nullptr;               // mapped_; null: sync() uses run_unstrided() or the library
    std::unique_ptr<BarrierStatistics> statistics_;  // null: disabled
    std::unique_ptr<Mapped> mapped_;                 // null: run_unstrided() has another fabric
    coll::LibraryTeam* library_ = nullptr;           // runs sync(); null: none
    std::unique_ptr<Tabled> tabled_;
    std::unique_ptr<RemoteSignals> signals_;  // of remote_
    std::unique_ptr<Remote> remote_;
    std::vector<int> leaders_;       // the first PE of each host; empty: one host
    std::vector<int> node_members_;  // the PEs of this host, unless leaders_ is empty; likewise:
    barrier::NodeLayout nodes_;
};

}  // namespace npushmem
