// The team of all PEs and its barrier: over mapped memory when every PE is mapped, otherwise over the transports.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/coll/barrier/barrier.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"
#include "core/coll/barrier/signal_fabric.hpp"
#include "core/coll/barrier/tuning.hpp"
#include "core/map/fast_map.hpp"
#include "core/map/host_layout.hpp"
#include "core/memory/symmetric_heap.hpp"
#include "core/remote/remote_access.hpp"
#include "core/team/team_barrier.hpp"

namespace npushmem {

// The resources of the world team; all references outlive it.
struct WorldResources {
    int my_pe;
    int npes;
    double pes_per_core;
    const HostLayout& layout;
    bool all_mapped;  // every PE maps every PE
    const FastMap& map;
    SliceLookup slice_of;  // for PEs outside the fast map
    RemoteAccess& remote;
    const Waiter& waiter;
    Duration timeout;
    std::string algorithm;  // NPUSHMEM_BARRIER_ALGO
    const barrier::Tuning& tuning;
    std::uint64_t sample_every = 0;  // barriers; 0: no statistics
    WaitOs* os = nullptr;            // for statistics
};

class WorldTeam {
public:
    // Allocates its state from the heap: all PEs must make it at the same point of their sequence of allocations.
    static Result<std::unique_ptr<WorldTeam>> make(const WorldResources& resources, SymmetricHeap& heap);
    WorldTeam(const WorldTeam&) = delete;
    WorldTeam& operator=(const WorldTeam&) = delete;

    Status sync() { return sync(default_plan_); }
    [[nodiscard]] const barrier::Plan& default_plan() const { return default_plan_; }
    void set_default_plan(const barrier::Plan& plan) { default_plan_ = plan; }
    // Uses another plan than the default; all PEs pass the same one.
    Status sync(const barrier::Plan& plan) {
        // Relaxed: read only to name missing PEs, and by this PE's threads to decide whether a finalized PE will enter
        // the next barrier.
        const std::uint64_t number = barriers_.load(std::memory_order_relaxed) + 1;
        control_->entered.store(number, std::memory_order_relaxed);
        const auto run_barrier = [&] { return mapped_ ? mapped_->run(plan) : remote_->run(plan); };
        const Code code = statistics_ ? statistics_->timed_run(number, run_barrier) : run_barrier();
        if (code != Code::ok) [[unlikely]]
            return failure(code);
        barriers_.store(number, std::memory_order_relaxed);
        return {};
    }

    // Stops counting barriers.
    void disable_statistics() { statistics_.reset(); }

    // Resolves this text, as in NPUSHMEM_BARRIER_ALGO, for this team.
    [[nodiscard]] Result<barrier::Choice> choose(std::string_view text) const {
        return barrier::choose(text, selection_input_, tuning_);
    }
    [[nodiscard]] const barrier::BarrierSelectionInput& selection_input() const { return selection_input_; }

    // Returns how many barriers this PE has left; equal on all PEs between two barriers.
    [[nodiscard]] std::uint64_t barriers() const { return barriers_.load(std::memory_order_relaxed); }

    // "shared_counter: 8 PEs on 2 cores ..."
    [[nodiscard]] const std::string& choice() const { return choice_; }

private:
    using Mapped = barrier::Barrier<barrier::MappedFabric<barrier::StridedStates>>;
    using Remote = barrier::Barrier<barrier::SignalFabricRef>;

    WorldTeam(SymmetricHeap& heap, const WorldResources& resources)
        : selection_input_{resources.npes, resources.pes_per_core, resources.layout.hosts(),
                           resources.all_mapped &&
                               resources.map.mapped_pes == static_cast<std::uint32_t>(resources.npes)},
          tuning_(resources.tuning),
          control_(&heap.control()),
          members_{0, 1, resources.npes},
          slice_of_(resources.slice_of),
          access_(&resources.remote) {}
    [[nodiscard]] Status failure(Code code);
    [[nodiscard]] std::string latecomers();
    void set_nodes(const HostLayout& layout, int my_pe);
    void count(const WorldResources& resources);

    barrier::BarrierSelectionInput selection_input_;
    const barrier::Tuning& tuning_;
    barrier::Plan default_plan_;
    ControlBlock* control_;  // the own one
    PeRange members_;
    SliceLookup slice_of_;
    RemoteAccess* access_;
    std::atomic<std::uint64_t> barriers_{0};
    std::string choice_;
    std::vector<int> leaders_;  // the first PE of each host
    barrier::NodeLayout nodes_;
    std::unique_ptr<Mapped> mapped_;
    std::unique_ptr<RemoteSignals> signals_;
    std::unique_ptr<Remote> remote_;
    std::unique_ptr<BarrierStatistics> statistics_;  // null: disabled
};

}  // namespace npushmem
