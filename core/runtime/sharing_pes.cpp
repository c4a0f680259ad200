#include "core/runtime/sharing_pes.hpp"

#include <algorithm>
#include <cstdint>

#include "core/map/sharing.hpp"
#include "core/runtime/exchange.hpp"

namespace npushmem {

namespace {

constexpr std::size_t word_bits = 64;

std::size_t max_local_pes(const HostLayout& layout) {
    std::size_t max = 0;
    for (int host = 0; host < layout.hosts(); ++host) max = std::max(max, layout.pes_of(host).size());
    return max;
}

std::uint64_t word_of(const std::vector<bool>& bits, std::size_t word) {
    std::uint64_t value = 0;
    for (std::size_t bit = 0; bit < word_bits && word * word_bits + bit < bits.size(); ++bit)
        value |= std::uint64_t{bits[word * word_bits + bit]} << bit;
    return value;
}

}  // namespace

Result<SharingPes> find_sharing_pes(Bootstrap& bootstrap, const HostLayout& layout, int my_pe,
                                    std::vector<bool> mapped) {
    const auto me = static_cast<std::size_t>(layout.local_index(my_pe));
    mapped[me] = true;
    const auto local = layout.pes_of(layout.host_of(my_pe));
    // Mostly there is no more to be said than that, and the rest grows with the square of the PEs.
    const bool all = std::ranges::count(mapped, false) == 0;
    const auto map_all = gather(bootstrap, static_cast<std::uint64_t>(all));
    if (!map_all.ok()) return map_all.status();
    if (std::ranges::count(map_all.value(), 0U) == 0)
        return SharingPes{std::vector<int>(local.begin(), local.end()), layout.hosts() == 1};
    MappingMatrix maps(local.size(), std::vector<bool>(local.size()));
    SharingPes sharing_pes{{}, layout.hosts() == 1};
    // The same number of rounds on all hosts.
    for (std::size_t word = 0; word * word_bits < max_local_pes(layout); ++word) {
        const auto gathered = gather(bootstrap, word_of(mapped, word));
        if (!gathered.ok()) return gathered.status();
        for (std::size_t a = 0; a < local.size(); ++a)
            for (std::size_t b = word * word_bits; b < std::min(local.size(), (word + 1) * word_bits); ++b)
                maps[a][b] = (gathered.value()[static_cast<std::size_t>(local[a])] >> (b % word_bits) & 1U) != 0;
    }
    for (const auto& row : maps)
        sharing_pes.all_map_all = sharing_pes.all_map_all && std::ranges::count(row, false) == 0;
    for (const int index : sharing_group(static_cast<int>(me), maps))
        sharing_pes.pes.push_back(local[static_cast<std::size_t>(index)]);
    return sharing_pes;
}

}  // namespace npushmem
