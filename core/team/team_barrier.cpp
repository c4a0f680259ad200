#include "core/team/team_barrier.hpp"

namespace npushmem {

TeamBarrier::TeamBarrier(const Place& place, const barrier::Plan& plan, SliceOf slice_of, RemoteAccess& remote,
                         std::byte* own_slice, const Waiter& waiter, Duration timeout) {
    const PeRange members = place.members;
    if (place.mapped) {
        mapped_ = std::make_unique<Mapped>(barrier::MappedFabric(place.states, members, waiter, timeout), members,
                                           place.index, plan);
        return;
    }
    signals_ = std::make_unique<RemoteSignals>(std::move(slice_of), remote, own_slice + place.state, place.state,
                                               members, place.my_pe, waiter, timeout);
    remote_ = std::make_unique<Remote>(barrier::SignalFabricRef(*signals_), members, place.index, plan);
}

Status TeamBarrier::run(std::string_view team) {
    const Code code = mapped_ ? mapped_->run() : remote_->run();
    if (code == Code::ok) [[likely]]
        return {};
    if (signals_ && !signals_->cause().ok()) return signals_->cause();
    return {code, mapped_ ? mapped_->failure_text(team) : remote_->failure_text(team)};
}

}  // namespace npushmem
