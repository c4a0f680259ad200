#include "core/team/world_team.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

namespace npushmem {

Result<std::unique_ptr<WorldTeam>> WorldTeam::make(const WorldResources& resources, SymmetricHeap& heap) {
    std::unique_ptr<WorldTeam> team(new WorldTeam(heap, resources));
    auto choice = team->choose(resources.algorithm);
    if (!choice.ok()) return choice.status().within("NPUSHMEM_BARRIER_ALGO");
    auto state = heap.allocate(barrier::state_bytes(resources.npes), barrier::line_bytes);
    if (!state.ok()) return state.status().within("state of the world's barrier");

    const barrier::Plan& plan = choice.value().plan;
    const PeRange members{0, 1, resources.npes};
    team->default_plan_ = plan;
    team->choice_ = fmt::format("{} ({})", name_of(plan), choice.value().why);
    team->set_nodes(resources.layout, resources.my_pe);
    if (resources.sample_every != 0) team->count(resources);
    if (team->selection_input_.mapped) {
        const barrier::StridedStates states{resources.map.peers + state.value(),
                                            static_cast<std::ptrdiff_t>(resources.map.stride)};
        team->mapped_ =
            std::make_unique<Mapped>(barrier::MappedFabric(states, members, resources.waiter, resources.timeout),
                                     members, resources.my_pe, plan, &team->nodes_);
    } else {
        team->signals_ =
            std::make_unique<RemoteSignals>(resources.slice_of, resources.remote, heap.at(state.value()), state.value(),
                                            members, resources.my_pe, resources.waiter, resources.timeout);
        team->remote_ = std::make_unique<Remote>(barrier::SignalFabricRef(*team->signals_), members, resources.my_pe,
                                                 plan, &team->nodes_);
    }
    return team;
}

void WorldTeam::set_nodes(const HostLayout& layout, int my_pe) {
    for (int host = 0; host < layout.hosts(); ++host) leaders_.push_back(layout.pes_of(host)[0]);
    const int host = layout.host_of(my_pe);
    nodes_ = {layout.pes_of(host), layout.local_index(my_pe), leaders_, host};
}

// Times the PEs of this host with readable counts, or only this PE.
void WorldTeam::count(const WorldResources& resources) {
    std::vector<BarrierCounters*> counts;
    std::size_t own = 0;
    bool all = true;
    for (const int pe : resources.layout.pes_of(resources.layout.host_of(resources.my_pe))) {
        std::byte* const slice = pe == resources.my_pe ? reinterpret_cast<std::byte*>(control_) : slice_of_(pe);
        all = all && slice != nullptr;
        if (slice == nullptr) continue;
        if (pe == resources.my_pe) own = counts.size();
        counts.push_back(&reinterpret_cast<ControlBlock*>(slice)->counts);
    }
    if (!all) counts = {&control_->counts}, own = 0;
    statistics_ = std::make_unique<BarrierStatistics>(std::move(counts), own, resources.sample_every, *resources.os);
}

// Names the PEs that have not entered this PE's barrier, "; missing: PEs 1, 5". Only reads the memory of PEs that may
// be missing.
std::string WorldTeam::latecomers() {
    constexpr std::size_t max_named = 16;
    const std::uint64_t number = control_->entered.load(std::memory_order_relaxed);
    std::vector<int> missing;
    for (int i = 0; i < members_.count && missing.size() <= max_named; ++i) {
        std::uint64_t entered = 0;
        if (const std::byte* slice = slice_of_(members_.at(i))) {
            // Relaxed: a number for a message, which its PE may be writing.
            entered = reinterpret_cast<const ControlBlock*>(slice)->entered.load(std::memory_order_relaxed);
        } else if (!access_
                        ->get(members_.at(i), offsetof(ControlBlock, entered), &entered, sizeof entered,
                              RemoteAccess::Completion::local)
                        .ok()) {
            return "";
        }
        if (!barrier::reached(entered, number)) missing.push_back(members_.at(i));
    }
    if (missing.empty()) return "";
    const bool more = missing.size() > max_named;
    if (more) missing.pop_back();
    return fmt::format("; missing: {} {}{}", missing.size() == 1 ? "PE" : "PEs", fmt::join(missing, ", "),
                       more ? " and others" : "");
}

Status WorldTeam::failure(Code code) {
    if (signals_ && !signals_->cause().ok()) return signals_->cause();
    const std::string text = mapped_ ? mapped_->failure_text("world") : remote_->failure_text("world");
    return {code, code == Code::timeout ? text + latecomers() : text};
}

}  // namespace npushmem
