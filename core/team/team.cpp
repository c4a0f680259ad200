#include "core/team/team.hpp"

namespace npushmem {

namespace {

bool holds(const FastMap& map, int pe) { return static_cast<std::uint32_t>(pe) - map.first_pe < map.mapped_pes; }

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
        if (members.count > 1 && members.count <= coll::LineExchange::most_members)
            lines_ = std::make_unique<coll::LineExchange>(
                barrier::StridedStates{first_slice_ + place + layout_.lines(), distance_}, members, index,
                parts.pes_per_core > 1, parts.waiter, parts.timeout);
    }
    if (!own_barrier) return;
    barrier_ =
        std::make_unique<TeamBarrier>(TeamBarrier::Place{members, parts.my_pe, index, place, all_found_, states},
                                      parts.slice_of, parts.remote, parts.own_slice, parts.waiter, parts.timeout);
    const auto wanted = choose(parts.algorithm);
    // What serves the world need not serve every team of it.
    plan_ = wanted.ok() ? wanted.value().plan : barrier::choose_automatically(situation()).plan;
    if (parts.time_one_in != 0) count();
}

barrier::Situation Team::situation() const { return {members_.count, parts_.pes_per_core, 1, all_found_}; }

Result<barrier::Choice> Team::choose(std::string_view text) const {
    return barrier::choose(text, situation(), parts_.tuning);
}

Status Team::sync(const barrier::Plan& plan) {
    const auto meet = [&] { return barrier_->run(plan); };
    const Code code = statistics_ ? statistics_->around(++meetings_, meet) : meet();
    if (code == Code::ok) [[likely]]
        return {};
    return barrier_->failure(code, name_);
}

MeetingCounts* Team::counts_of(int member) const {
    return reinterpret_cast<MeetingCounts*>(find(member, place_ + layout_.counts()));
}

// Who came last is found where every member sees every member's counts; else the own ones are all there is.
void Team::count() {
    std::vector<MeetingCounts*> counts;
    for (int member = 0; all_found_ && member < members_.count; ++member) counts.push_back(counts_of(member));
    if (!all_found_) counts.push_back(counts_of(index_));
    statistics_ = std::make_unique<MeetingStatistics>(
        std::move(counts), all_found_ ? static_cast<std::size_t>(index_) : 0, parts_.time_one_in, *parts_.os);
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
