#include "core/team/team.hpp"

namespace npushmem {

namespace {

bool holds(const FastMap& map, int pe) { return static_cast<std::uint32_t>(pe) - map.first_pe < map.mapped_pes; }

// Strided ones: then all between the first and the last are there as well.
bool in_fast_map(const FastMap& map, const PeRange& members) {
    return members.table == nullptr && holds(map, members.first) && holds(map, members.at(members.count - 1));
}

}  // namespace

std::byte* slice_of(const TeamParts& parts, int pe) {
    if (pe == parts.my_pe) return parts.own_slice;
    const FastMap& map = parts.map;
    if (!holds(map, pe)) return parts.slice_of(pe);
    return map.peers + (static_cast<std::uint32_t>(pe) - map.first_pe) * map.stride;
}

Team::Team(const TeamParts& parts, Members members, std::uint64_t place, bool mapped, std::string name,
           bool own_barrier)
    : parts_(parts),
      members_(std::move(members)),
      size_(members_.count()),
      index_(members_.index_of(parts.my_pe)),
      place_(place),
      layout_(parts.npes),
      name_(std::move(name)),
      all_found_(mapped),
      equally_far_(mapped && in_fast_map(parts.map, members_.range())) {
    find_slices();
    if (all_found_ && size_ > 1 && size_ <= coll::LineExchange::most_members)
        lines_ = std::make_unique<coll::LineExchange>(states().behind(layout_.lines()), members_.range(), index_,
                                                      parts.waiter, parts.timeout);
    if (all_found_ && size_ > 1 && size_ <= coll::BroadcastRing::most_members)
        ring_ = std::make_unique<coll::BroadcastRing>(states().behind(layout_.ring()), members_.range(), index_,
                                                      parts.pes_per_core > 1, parts.waiter, parts.timeout);
    if (!own_barrier) return;
    barrier_ =
        std::make_unique<TeamBarrier>(TeamBarrier::Place{members_, parts.my_pe, index_, place, all_found_, states()},
                                      parts.slice_of, parts.remote, parts.own_slice, parts.waiter, parts.timeout);
    const auto wanted = choose(parts.algorithm);
    // What serves the world need not serve every team of it.
    plan_ = wanted.ok() ? wanted.value().plan : barrier::choose_automatically(situation()).plan;
    if (parts.time_one_in != 0) count();
}

void Team::find_slices() {
    if (equally_far_) {
        first_slice_ = slice_of(parts_, members_.at(0));
        distance_ = static_cast<std::ptrdiff_t>(parts_.map.stride) * members_.range().stride;
        return;
    }
    slices_.reserve(static_cast<std::size_t>(size_));
    for (int member = 0; member < size_; ++member) slices_.push_back(slice_of(parts_, members_.at(member)));
}

// Of the team's place, where all are found.
barrier::MemberStates Team::states() const {
    if (equally_far_) return barrier::StridedStates{first_slice_ + place_, distance_};
    return barrier::TabledStates{slices_, place_};
}

barrier::Situation Team::situation() const { return {size_, parts_.pes_per_core, 1, all_found_}; }

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
    for (int member = 0; all_found_ && member < size_; ++member) counts.push_back(counts_of(member));
    if (!all_found_) counts.push_back(counts_of(index_));
    statistics_ = std::make_unique<MeetingStatistics>(
        std::move(counts), all_found_ ? static_cast<std::size_t>(index_) : 0, parts_.time_one_in, *parts_.os);
}

FastMap Team::map() const {
    FastMap map = parts_.map;
    map.first_pe = 0;
    map.peers = first_slice_;
    map.stride = static_cast<std::uint64_t>(distance_);
    map.mapped_pes = equally_far_ ? static_cast<std::uint32_t>(size_) : 0;
    return map;
}

Status Team::put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes) {
    return parts_.remote.put(members_.at(member), offset, source, bytes, RemoteAccess::Completion::local);
}

Status Team::put_blocks(int member, const Blocks& blocks, const void* source) {
    return parts_.remote.put_blocks(members_.at(member), blocks, source);
}

Status Team::get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) {
    return parts_.remote.get(members_.at(member), offset, dest, bytes, RemoteAccess::Completion::local);
}

}  // namespace npushmem
