#include "core/team/team_barrier.hpp"

namespace npushmem {

TeamBarrier::TeamBarrier(const Place& place, SliceOf slice_of, RemoteAccess& remote, std::byte* own_slice,
                         const Waiter& waiter, Duration timeout)
    : members_(place.members) {
    const barrier::Plan plan{};  // every call says its own
    const PeRange& members = members_.range();
    if (place.mapped && place.states.has_table()) {
        tabled_ = std::make_unique<Tabled>(barrier::MappedFabric(place.states.tabled, members, waiter, timeout),
                                           members, place.index, plan);
        return;
    }
    if (place.mapped) {
        mapped_ = std::make_unique<Mapped>(barrier::MappedFabric(place.states.strided, members, waiter, timeout),
                                           members, place.index, plan);
        return;
    }
    signals_ = std::make_unique<RemoteSignals>(std::move(slice_of), remote, own_slice + place.state, place.state,
                                               members, place.my_pe, waiter, timeout);
    remote_ = std::make_unique<Remote>(barrier::SignalFabricRef(*signals_), members, place.index, plan);
}

Status TeamBarrier::failure(Code code, std::string_view team) const {
    if (signals_ && !signals_->cause().ok()) return signals_->cause();
    return {code, mapped_   ? mapped_->failure_text(team)
                  : tabled_ ? tabled_->failure_text(team)
                            : remote_->failure_text(team)};
}

}  // namespace npushmem
