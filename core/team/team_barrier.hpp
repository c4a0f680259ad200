// The barrier of a team other than the world: over mapped memory where the CPU sees every member's state, else over the
// transports.
#pragma once

#include <memory>
#include <string>

#include "core/coll/barrier/barrier.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"
#include "core/coll/barrier/signal_fabric.hpp"
#include "core/team/members.hpp"
#include "core/team/remote_signals.hpp"

namespace npushmem {

class TeamBarrier {
public:
    struct Options {
        Members members;
        int my_pe;            // a world PE
        int index;            // of it among the members
        std::uint64_t state;  // offset in each member's slice, of zeroed memory
        bool mapped;          // by all members; then `states` says where
        barrier::MemberStates states;
    };

    // What is referred to outlives the barrier.
    TeamBarrier(const Options& options, SliceLookup slice_of, RemoteAccess& remote, std::byte* own_slice,
                const Waiter& waiter, Duration timeout);
    TeamBarrier(const TeamBarrier&) = delete;
    TeamBarrier& operator=(const TeamBarrier&) = delete;

    Code run(const barrier::Plan& plan) {
        if (mapped_) [[likely]]
            return mapped_->run(plan);
        return tabled_ ? tabled_->run(plan) : remote_->run(plan);
    }
    // After a run that did not return ok. `team`: for the message.
    [[nodiscard]] Status failure(Code code, std::string_view team) const;

private:
    using Mapped = barrier::Barrier<barrier::MappedFabric<barrier::StridedStates>>;
    using Tabled = barrier::Barrier<barrier::MappedFabric<barrier::TabledStates>>;
    using Remote = barrier::Barrier<barrier::SignalFabricRef>;

    Members members_;  // what the barriers' ranges point into
    std::unique_ptr<Mapped> mapped_;
    std::unique_ptr<Tabled> tabled_;
    std::unique_ptr<RemoteSignals> signals_;
    std::unique_ptr<Remote> remote_;
};

}  // namespace npushmem
