#include "core/team/world_team.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

namespace npushmem {

Result<std::unique_ptr<WorldTeam>> WorldTeam::make(const WorldParts& parts, SymmetricHeap& heap) {
    std::unique_ptr<WorldTeam> team(new WorldTeam(heap, parts));
    auto choice = team->choose(parts.algorithm);
    if (!choice.ok()) return choice.status().within("NPUSHMEM_BARRIER_ALGO");
    auto state = heap.allocate(barrier::state_bytes(parts.npes), barrier::line_bytes);
    if (!state.ok()) return state.status().within("state of the world's barrier");

    const barrier::Plan& plan = choice.value().plan;
    const PeRange members{0, 1, parts.npes};
    team->standard_ = plan;
    team->choice_ = fmt::format("{} ({})", name_of(plan), choice.value().why);
    team->place(parts.layout, parts.my_pe);
    if (parts.time_one_in != 0) team->count(parts);
    if (team->situation_.mapped) {
        const barrier::StridedStates states{parts.map.peers + state.value(),
                                            static_cast<std::ptrdiff_t>(parts.map.stride)};
        team->mapped_ = std::make_unique<Mapped>(barrier::MappedFabric(states, members, parts.waiter, parts.timeout),
                                                 members, parts.my_pe, plan, &team->nodes_);
    } else {
        team->signals_ =
            std::make_unique<RemoteSignals>(parts.slice_of, parts.remote, heap.at(state.value()), state.value(),
                                            members, parts.my_pe, parts.waiter, parts.timeout);
        team->remote_ = std::make_unique<Remote>(barrier::SignalFabricRef(*team->signals_), members, parts.my_pe, plan,
                                                 &team->nodes_);
    }
    return team;
}

void WorldTeam::place(const HostLayout& layout, int my_pe) {
    for (int host = 0; host < layout.hosts(); ++host) leaders_.push_back(layout.pes_of(host)[0]);
    const int host = layout.host_of(my_pe);
    nodes_ = {layout.pes_of(host), layout.local_index(my_pe), leaders_, host};
}

// Times those of this host whose counts can be read here; where none can, only oneself.
void WorldTeam::count(const WorldParts& parts) {
    std::vector<MeetingCounts*> counts;
    std::size_t own = 0;
    bool all = true;
    for (const int pe : parts.layout.pes_of(parts.layout.host_of(parts.my_pe))) {
        std::byte* const slice = pe == parts.my_pe ? reinterpret_cast<std::byte*>(control_) : slice_of_(pe);
        all = all && slice != nullptr;
        if (slice == nullptr) continue;
        if (pe == parts.my_pe) own = counts.size();
        counts.push_back(&reinterpret_cast<ControlBlock*>(slice)->counts);
    }
    if (!all) counts = {&control_->counts}, own = 0;
    statistics_ = std::make_unique<MeetingStatistics>(std::move(counts), own, parts.time_one_in, *parts.os);
}

// Who has not come to this PE's meeting, "; not there: PEs 1, 5". Looks at most at the memory of those who may have.
std::string WorldTeam::latecomers() {
    constexpr std::size_t most_named = 16;
    const std::uint64_t meeting = control_->entered.load(std::memory_order_relaxed);
    std::vector<int> missing;
    for (int i = 0; i < members_.count && missing.size() <= most_named; ++i) {
        std::uint64_t entered = 0;
        if (const std::byte* slice = slice_of_(members_.at(i))) {
            // Relaxed: a number to be told, from a PE that may write it at this moment.
            entered = reinterpret_cast<const ControlBlock*>(slice)->entered.load(std::memory_order_relaxed);
        } else if (!access_
                        ->get(members_.at(i), offsetof(ControlBlock, entered), &entered, sizeof entered,
                              RemoteAccess::Completion::local)
                        .ok()) {
            return "";
        }
        if (!barrier::reached(entered, meeting)) missing.push_back(members_.at(i));
    }
    if (missing.empty()) return "";
    const bool more = missing.size() > most_named;
    if (more) missing.pop_back();
    return fmt::format("; not there: {} {}{}", missing.size() == 1 ? "PE" : "PEs", fmt::join(missing, ", "),
                       more ? " and others" : "");
}

Status WorldTeam::failure(Code code) {
    if (signals_ && !signals_->cause().ok()) return signals_->cause();
    const std::string text = mapped_ ? mapped_->failure_text("world") : remote_->failure_text("world");
    return {code, code == Code::timeout ? text + latecomers() : text};
}

}  // namespace npushmem
