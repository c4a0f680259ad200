#include "bootstrap/rendezvous/rank_list.hpp"

#include <fmt/format.h>

namespace npushmem::rendezvous {
namespace {

constexpr std::size_t ranges_shown = 12;

// One past the last element of the run of consecutive ranks that begins at `begin`.
std::size_t run_end(const std::vector<int>& ranks, std::size_t begin) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    return end;
}

}  // namespace

std::string rank_list(const std::vector<int>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    std::size_t shown = 0;
    for (std::size_t begin = 0; begin < ranks.size(); ++shown) {
        if (shown == ranges_shown) return text + fmt::format(" and {} more", ranks.size() - begin);
        const std::size_t end = run_end(ranks, begin);
        text += fmt::format("{}{}", shown == 0 ? "" : ", ", ranks[begin]);
        if (end - begin == 2) text += fmt::format(", {}", ranks[end - 1]);
        if (end - begin > 2) text += fmt::format("-{}", ranks[end - 1]);
        begin = end;
    }
    return text;
}

}  // namespace npushmem::rendezvous
