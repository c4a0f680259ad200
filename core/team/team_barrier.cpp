#include "core/team/team_barrier.hpp"

namespace npushmem {

TeamBarrier::TeamBarrier(const Options& options, SliceLookup slice_of, RemoteAccess& remote, std::byte* own_slice,
                         const Waiter& waiter, Duration timeout)
    : members_(options.members) {
    const barrier::Plan plan{};  // every call says its own
    const PeRange& members = members_.range();
    if (options.mapped && options.states.has_table()) {
        tabled_ = std::make_unique<Tabled>(barrier::MappedFabric(options.states.tabled, members, waiter, timeout),
                                           members, options.index, plan);
        return;
    }
    if (options.mapped) {
        mapped_ = std::make_unique<Mapped>(barrier::MappedFabric(options.states.strided, members, waiter, timeout),
                                           members, options.index, plan);
        return;
    }
    signals_ = std::make_unique<RemoteSignals>(std::move(slice_of), remote, own_slice + options.state, options.state,
                                               members, options.my_pe, waiter, timeout);
    remote_ = std::make_unique<Remote>(barrier::SignalFabricRef(*signals_), members, options.index, plan);
}

Status TeamBarrier::failure(Code code, std::string_view team) const {
    if (signals_ && !signals_->cause().ok()) return signals_->cause();
    return {code, mapped_   ? mapped_->failure_text(team)
                  : tabled_ ? tabled_->failure_text(team)
                            : remote_->failure_text(team)};
}

}  // namespace npushmem
