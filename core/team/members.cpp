#include "core/team/members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>

namespace npushmem {

namespace {

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

std::uint32_t Members::list_hash() const {
    if (!list_) return 0;
    std::uint32_t hash = 2166136261U;  // FNV-1a over the PEs
    for (const int pe : list_->pes) hash = (hash ^ static_cast<std::uint32_t>(pe)) * 16777619U;
    return hash;
}

std::string Members::text() const {
    constexpr int max_listed = 16;
    if (range_.count == 1) return fmt::format("PE {}", range_.at(0));
    if (!list_) return fmt::format("PEs {} to {}, every {}", range_.first, range_.at(range_.count - 1), range_.stride);
    const std::span<const int> some(list_->pes.data(), static_cast<std::size_t>(std::min(range_.count, max_listed)));
    return fmt::format("PEs {}{}", fmt::join(some, ", "),
                       range_.count > max_listed ? fmt::format(" and {} more", range_.count - max_listed) : "");
}

}  // namespace npushmem
