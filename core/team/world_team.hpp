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
#include "core/map/host_layout.hpp"
#include "core/memory/symmetric_heap.hpp"
#include "core/ops/fast_map.hpp"
#include "core/ops/remote_access.hpp"
#include "core/team/meeting_statistics.hpp"
#include "core/team/remote_signals.hpp"

namespace npushmem {

// What the world team is made from; everything referred to outlives it.
struct WorldParts {
    int my_pe;
    int npes;
    double pes_per_core;
    const HostLayout& layout;
    bool all_mapped;  // every PE maps every PE
    const FastMap& map;
    SliceOf slice_of;  // for PEs that the fast map does not hold
    RemoteAccess& remote;
    const Waiter& waiter;
    Duration timeout;
    std::string algorithm;  // NPUSHMEM_BARRIER_ALGO
    const barrier::Tuning& tuning;
    std::uint64_t time_one_in = 0;  // meetings; 0: no statistics
    WaitOs* os = nullptr;           // for statistics
};

class WorldTeam {
public:
    // Takes its state from the heap: all PEs must make it at the same point of their sequence of allocations.
    static Result<std::unique_ptr<WorldTeam>> make(const WorldParts& parts, SymmetricHeap& heap);
    WorldTeam(const WorldTeam&) = delete;
    WorldTeam& operator=(const WorldTeam&) = delete;

    Status sync() { return sync(standard_); }
    [[nodiscard]] const barrier::Plan& standard() const { return standard_; }
    void set_standard(const barrier::Plan& plan) { standard_ = plan; }
    // By another plan than the standard one: the same on all PEs.
    Status sync(const barrier::Plan& plan) {
        // Relaxed: read only to name who is missing, and by the own threads to tell whether a finalized PE will come to
        // the next meeting.
        const std::uint64_t meeting = meetings_.load(std::memory_order_relaxed) + 1;
        control_->entered.store(meeting, std::memory_order_relaxed);
        const auto meet = [&] { return mapped_ ? mapped_->run(plan) : remote_->run(plan); };
        const Code code = statistics_ ? statistics_->around(meeting, meet) : meet();
        if (code != Code::ok) [[unlikely]]
            return failure(code);
        meetings_.store(meeting, std::memory_order_relaxed);
        return {};
    }

    // From here on meetings are not counted.
    void stop_counting() { statistics_.reset(); }

    // The plan that this text (as in NPUSHMEM_BARRIER_ALGO) stands for in this team.
    [[nodiscard]] Result<barrier::Choice> choose(std::string_view text) const {
        return barrier::choose(text, situation_, tuning_);
    }
    [[nodiscard]] const barrier::Situation& situation() const { return situation_; }

    // Meetings that this PE has left; the same number on all PEs between two meetings.
    [[nodiscard]] std::uint64_t meetings() const { return meetings_.load(std::memory_order_relaxed); }

    // "shared_counter: 8 PEs on 2 cores ..."
    [[nodiscard]] const std::string& choice() const { return choice_; }

private:
    using Mapped = barrier::Barrier<barrier::MappedFabric<barrier::StridedStates>>;
    using Remote = barrier::Barrier<barrier::SignalFabricRef>;

    WorldTeam(SymmetricHeap& heap, const WorldParts& parts)
        : situation_{parts.npes, parts.pes_per_core, parts.layout.hosts(),
                     parts.all_mapped && parts.map.mapped_pes == static_cast<std::uint32_t>(parts.npes)},
          tuning_(parts.tuning),
          control_(&heap.control()),
          members_{0, 1, parts.npes},
          slice_of_(parts.slice_of),
          access_(&parts.remote) {}
    [[nodiscard]] Status failure(Code code);
    [[nodiscard]] std::string latecomers();
    void place(const HostLayout& layout, int my_pe);
    void count(const WorldParts& parts);

    barrier::Situation situation_;
    const barrier::Tuning& tuning_;
    barrier::Plan standard_;
    ControlBlock* control_;  // the own one
    PeRange members_;
    SliceOf slice_of_;
    RemoteAccess* access_;
    std::atomic<std::uint64_t> meetings_{0};
    std::string choice_;
    std::vector<int> leaders_;  // the first PE of each host
    barrier::Nodes nodes_;
    std::unique_ptr<Mapped> mapped_;
    std::unique_ptr<RemoteSignals> signals_;
    std::unique_ptr<Remote> remote_;
    std::unique_ptr<MeetingStatistics> statistics_;  // null: none wanted
};

}  // namespace npushmem
