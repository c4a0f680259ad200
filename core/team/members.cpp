// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/hash.hpp"

namespace npushmem {

namespace {

bool holds(const FastMap& map, int pe) { return static_cast<std::uint32_t>(pe) - map.first_pe < map.mapped_pes; }

// Only for strided members: then all between the first and the last are mapped too.
bool in_fast_map(const FastMap& map, const PeRange& members) {
    return members.table == nullptr && holds(map, members.first) && holds(map, members.at(members.count - 1));
}

std::optional<PeRange> at_equal_distances(std::span<const int> pes) {
    if (pes.size() == 1) return PeRange::one(pes[0]);
    const PeRange range{pes[0], pes[1] - pes[0], static_cast<int>(pes.size())};
    for (int i = 0; i < range.count; ++i)
        if (pes[static_cast<std::size_t>(i)] != range.at(i)) return std::nullopt;
    return range;
}

}  // namespace

Members Members::listed(std::vector<int> pes) {
    if (const auto range = at_equal_distances(pes)) return {*range};
    auto list = std::make_shared<List>();
    list->pes = std::move(pes);
    for (std::size_t i = 0; i < list->pes.size(); ++i) list->places.emplace_back(list->pes[i], static_cast<int>(i));
    std::ranges::sort(list->places);
    Members members;
    members.range_ = {.count = static_cast<int>(list->pes.size()), .table = list->pes.data()};
    members.list_ = std::move(list);
    return members;
}

int Members::index_of(int world_pe) const {
    if (list_) {
        const auto place =
            std::ranges::lower_bound(list_->places, world_pe, {}, [](const auto& one) { return one.first; });
        return place != list_->places.end() && place->first == world_pe ? place->second : -1;
    }
    if (range_.count == 1) return world_pe == range_.first ? 0 : -1;
    const int distance = world_pe - range_.first;
    const int index = distance / range_.stride;
    return distance % range_.stride == 0 && index >= 0 && index < range_.count ? index : -1;
}

Members Members::every(int start, int stride, int count) const {
    if (!list_) return {PeRange{range_.at(start), count == 1 ? 1 : range_.stride * stride, count}};
    std::vector<int> pes;
    pes.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) pes.push_back(at(start + i * stride));
    return listed(std::move(pes));
}

std::uint32_t Members::list_hash() const { return list_ ? fnv1a<std::uint32_t>(list_->pes) : 0; }

std::string Members::text() const {
    constexpr int max_listed = 16;
    if (range_.count == 1) return fmt::format("PE {}", range_.at(0));
    if (!list_) return fmt::format("PEs {} to {}, every {}", range_.first, range_.at(range_.count - 1), range_.stride);
    const std::span<const int> some(list_->pes.data(), static_cast<std::size_t>(std::min(range_.count, max_listed)));
    return fmt::format("PEs {}{}", fmt::join(some, ", "),
                       range_.count > max_listed ? fmt::format(" and {} more", range_.count - max_listed) : "");
}

std::vector<int> listed_unless_all(const PeRange& members, int npes) {
    std::vector<int> pes;
    for (int i = 0; i < members.count && members.count < npes; ++i) pes.push_back(members.at(i));
    return pes;
}

Status complete_members(RemoteAccess& remote, const std::vector<int>& listed) {
    return listed.empty() ? remote.complete() : remote.quiet(listed);
}

std::byte* slice_of(const TeamResources& resources, int pe) {
    if (pe == resources.my_pe) return resources.own_slice;
    const FastMap& map = resources.map;
    if (!holds(map, pe)) return resources.slice_of(pe);
    return map.peers + (static_cast<std::uint32_t>(pe) - map.first_pe) * map.stride;
}

AwaitedBytesParking parking_for_word(const TeamResources& resources, std::uint64_t offset) {
    return {resources.host_sleepers, awaited_bytes_of(resources.own_slice), offset, sizeof(std::uint64_t)};
}

bool maps_all(const TeamResources& resources, const PeRange& pes) {
    for (int i = 0; i < pes.count; ++i)
        if (slice_of(resources, pes.at(i)) == nullptr) return false;
    return true;
}

MemberMemory::MemberMemory(const TeamResources& resources, Members members, bool all_mapped)
    : members_(std::move(members)),
      own_index_(members_.index_of(resources.my_pe)),
      all_mapped_(all_mapped),
      is_strided_(all_mapped && in_fast_map(resources.map, members_.range())),
      own_slice_(resources.own_slice) {
    if (is_strided_) {
        first_slice_ = slice_of(resources, members_.at(0));
        distance_ = static_cast<std::ptrdiff_t>(resources.map.stride) * members_.range().stride;
        return;
    }
    slices_.reserve(static_cast<std::size_t>(members_.count()));
    for (int member = 0; member < members_.count(); ++member)
        slices_.push_back(slice_of(resources, members_.at(member)));
}

barrier::MemberStates MemberMemory::addresses(std::uint64_t offset) const {
    if (is_strided_) return barrier::StridedStates{first_slice_ + offset, distance_};
    return barrier::TabledStates{slices_, offset};
}

FastMap MemberMemory::renumbered(const FastMap& world) const {
    FastMap map = world;
    map.first_pe = 0;
    map.peers = first_slice_;
    map.stride = static_cast<std::uint64_t>(distance_);
    map.mapped_pes = is_strided_ ? static_cast<std::uint32_t>(members_.count()) : 0;
    return map;
}

}  // namespace npushmem
