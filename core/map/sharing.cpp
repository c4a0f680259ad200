#include "core/map/sharing.hpp"

#include <algorithm>
#include <cstddef>

namespace npushmem {

std::vector<int> sharing_group(int me, const MappingMatrix& maps) {
    const auto mapped = [&](int a, int b) { return maps[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; };
    std::vector<std::vector<int>> sets;
    for (int pe = 0; pe < static_cast<int>(maps.size()); ++pe) {
        const auto fits = [&](const std::vector<int>& set) {
            return std::ranges::all_of(set, [&](int other) { return mapped(pe, other) && mapped(other, pe); });
        };
        const auto found = std::ranges::find_if(sets, fits);
        if (found != sets.end())
            found->push_back(pe);
        else
            sets.push_back({pe});
    }
    return *std::ranges::find_if(sets, [me](const auto& set) { return std::ranges::find(set, me) != set.end(); });
}

}  // namespace npushmem
