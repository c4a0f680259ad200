#include "core/team/team.hpp"

namespace npushmem {

namespace {

bool holds(const FastMap& map, int pe) { return static_cast<std::uint32_t>(pe) - map.first_pe < map.mapped_pes; }

// Only for strided members: then all between the first and the last are mapped too.
bool in_fast_map(const FastMap& map, const PeRange& members) {
    return members.table == nullptr && holds(map, members.first) && holds(map, members.at(members.count - 1));
}

}  // namespace

std::byte* slice_of(const TeamResources& resources, int pe) {
    if (pe == resources.my_pe) return resources.own_slice;
    const FastMap& map = resources.map;
    if (!holds(map, pe)) return resources.slice_of(pe);
    return map.peers + (static_cast<std::uint32_t>(pe) - map.first_pe) * map.stride;
}

Team::Team(const TeamResources& resources, Members members, std::uint64_t state_offset, bool mapped, std::string name,
           bool own_barrier)
    : resources_(resources),
      members_(std::move(members)),
      size_(members_.count()),
      index_(members_.index_of(resources.my_pe)),
      state_offset_(state_offset),
      layout_(resources.npes),
      name_(std::move(name)),
      all_mapped_(mapped),
      is_strided_(mapped && in_fast_map(resources.map, members_.range())) {
    find_slices();
    if (all_mapped_ && size_ > 1 && size_ <= coll::CacheLineExchange::max_members)
        lines_ = std::make_unique<coll::CacheLineExchange>(states().behind(layout_.lines()), members_.range(), index_,
                                                           resources.waiter, resources.timeout);
    if (all_mapped_ && size_ > 1 && size_ <= coll::BroadcastRing::max_members)
        ring_ = std::make_unique<coll::BroadcastRing>(states().behind(layout_.ring()), members_.range(), index_,
                                                      resources.pes_per_core > 1, resources.waiter, resources.timeout);
    if (!own_barrier) return;
    barrier_ = std::make_unique<TeamBarrier>(
        TeamBarrier::Options{members_, resources.my_pe, index_, state_offset, all_mapped_, states()},
        resources.slice_of, resources.remote, resources.own_slice, resources.waiter, resources.timeout);
    const auto wanted = choose(resources.algorithm);
    // The plan of the world does not suit every team.
    plan_ = wanted.ok() ? wanted.value().plan : barrier::choose_automatically(selection_input()).plan;
    if (resources.sample_every != 0) count();
}

void Team::find_slices() {
    if (is_strided_) {
        first_slice_ = slice_of(resources_, members_.at(0));
        distance_ = static_cast<std::ptrdiff_t>(resources_.map.stride) * members_.range().stride;
        return;
    }
    slices_.reserve(static_cast<std::size_t>(size_));
    for (int member = 0; member < size_; ++member) slices_.push_back(slice_of(resources_, members_.at(member)));
}

// The members' states, if all are mapped.
barrier::MemberStates Team::states() const {
    if (is_strided_) return barrier::StridedStates{first_slice_ + state_offset_, distance_};
    return barrier::TabledStates{slices_, state_offset_};
}

barrier::BarrierSelectionInput Team::selection_input() const {
    return {size_, resources_.pes_per_core, 1, all_mapped_};
}

Result<barrier::Choice> Team::choose(std::string_view text) const {
    return barrier::choose(text, selection_input(), resources_.tuning);
}

Status Team::sync(const barrier::Plan& plan) {
    const auto run_barrier = [&] { return barrier_->run(plan); };
    const Code code = statistics_ ? statistics_->timed_run(++barriers_, run_barrier) : run_barrier();
    if (code == Code::ok) [[likely]]
        return {};
    return barrier_->failure(code, name_);
}

BarrierCounters* Team::counts_of(int member) const {
    return reinterpret_cast<BarrierCounters*>(mapped_address(member, state_offset_ + layout_.counts()));
}

// The last arrival is determined only if every member sees every member's counts; otherwise each counts for itself.
void Team::count() {
    std::vector<BarrierCounters*> counts;
    for (int member = 0; all_mapped_ && member < size_; ++member) counts.push_back(counts_of(member));
    if (!all_mapped_) counts.push_back(counts_of(index_));
    statistics_ = std::make_unique<BarrierStatistics>(
        std::move(counts), all_mapped_ ? static_cast<std::size_t>(index_) : 0, resources_.sample_every, *resources_.os);
}

FastMap Team::map() const {
    FastMap map = resources_.map;
    map.first_pe = 0;
    map.peers = first_slice_;
    map.stride = static_cast<std::uint64_t>(distance_);
    map.mapped_pes = is_strided_ ? static_cast<std::uint32_t>(size_) : 0;
    return map;
}

Status Team::put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes) {
    return resources_.remote.put(members_.at(member), offset, source, bytes, RemoteAccess::Completion::local);
}

Status Team::put_blocks(int member, const StridedBlocks& blocks, const void* source) {
    return resources_.remote.put_blocks(members_.at(member), blocks, source);
}

Status Team::get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) {
    return resources_.remote.get(members_.at(member), offset, dest, bytes, RemoteAccess::Completion::local);
}

}  // namespace npushmem
