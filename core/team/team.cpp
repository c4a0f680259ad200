#include "core/team/team.hpp"

namespace npushmem {

namespace {

bool holds(const FastMap& map, int pe) { return static_cast<std::uint32_t>(pe) - map.first_pe < map.mapped_pes; }

barrier::Plan plan_for(const TeamParts& parts, int members, bool mapped) {
    const barrier::Situation situation{members, parts.pes_per_core, 1, mapped};
    const auto wanted = barrier::choose(parts.algorithm, situation, parts.tuning);
    const bool usable = wanted.ok() && wanted.value().plan.id != barrier::hierarchical_id;
    return usable ? wanted.value().plan : barrier::choose_automatically(situation).plan;
}

}  // namespace

bool in_fast_map(const FastMap& map, const PeRange& members) {
    return holds(map, members.first) && holds(map, members.at(members.count - 1));
}

int Team::index_in(const PeRange& members, int world_pe) {
    if (members.count == 1) return world_pe == members.first ? 0 : -1;
    const int distance = world_pe - members.first;
    const int index = distance / members.stride;
    return distance % members.stride == 0 && index >= 0 && index < members.count ? index : -1;
}

Team::Team(const TeamParts& parts, PeRange members, int index, std::uint64_t place, bool mapped, std::string name,
           bool own_barrier)
    : parts_(parts),
      members_(members),
      index_(index),
      place_(place),
      layout_(parts.npes),
      name_(std::move(name)),
      all_found_(mapped && in_fast_map(parts.map, members)) {
    barrier::StridedStates states;
    if (all_found_) {
        const auto stride = static_cast<std::ptrdiff_t>(parts.map.stride);
        first_slice_ = parts.map.peers + (members.first - static_cast<int>(parts.map.first_pe)) * stride;
        distance_ = stride * members.stride;
        states = {first_slice_ + place, distance_};
    }
    if (!own_barrier) return;
    barrier_ = std::make_unique<TeamBarrier>(TeamBarrier::Place{members, parts.my_pe, index, place, all_found_, states},
                                             plan_for(parts, members.count, all_found_), parts.slice_of, parts.remote,
                                             parts.own_slice, parts.waiter, parts.timeout);
}

FastMap Team::map() const {
    FastMap map = parts_.map;
    map.first_pe = 0;
    map.peers = first_slice_;
    map.stride = static_cast<std::uint64_t>(distance_);
    map.mapped_pes = all_found_ ? static_cast<std::uint32_t>(members_.count) : 0;
    return map;
}

Status Team::put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes) {
    return parts_.remote.put(members_.at(member), offset, source, bytes, RemoteAccess::Completion::local);
}

Status Team::get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) {
    return parts_.remote.get(members_.at(member), offset, dest, bytes, RemoteAccess::Completion::local);
}

}  // namespace npushmem
