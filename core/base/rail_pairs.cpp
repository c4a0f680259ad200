#include "core/base/rail_pairs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace npushmem {
namespace {

enum class SubnetMatch { same, different, unknown };

SubnetMatch match(const Subnet& a, const Subnet& b) {
    if (a.bits == 0 || b.bits == 0) return SubnetMatch::unknown;
    if (a.bits != b.bits) return SubnetMatch::different;
    for (unsigned bit = 0; bit < a.bits; ++bit) {
        const unsigned mask = 0x80U >> bit % 8;
        if (((a.address.at(bit / 8) ^ b.address.at(bit / 8)) & mask) != 0) return SubnetMatch::different;
    }
    return SubnetMatch::same;
}

// Less is better; none: the two ports have no rail in common.
std::optional<int> penalty(const RailId& a, const RailId& b) {
    const bool same_number = a.number == b.number;
    if (a.given || b.given) return same_number ? std::optional(0) : std::nullopt;
    const SubnetMatch subnets = match(a.subnet, b.subnet);
    if (subnets == SubnetMatch::same) return same_number ? 0 : 1;
    if (!same_number) return std::nullopt;
    return subnets == SubnetMatch::unknown ? 2 : 3;  // between different subnets there may be a router
}

struct Candidate {
    int penalty;
    RailPair pair;
};

std::vector<Candidate> candidates_of(std::span<const RailId> lower, std::span<const RailId> higher) {
    std::vector<Candidate> out;
    for (std::size_t i = 0; i < lower.size(); ++i)
        for (std::size_t j = 0; j < higher.size(); ++j)
            if (const auto found = penalty(lower[i], higher[j])) out.push_back({*found, {i, j}});
    const auto key = [](const Candidate& each) {
        return std::tuple(each.penalty, each.pair.mine + each.pair.theirs, each.pair.mine);
    };
    std::sort(out.begin(), out.end(), [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
    return out;
}

// `mine` are the ports of the PE with the lower number.
std::vector<RailPair> pair_in_order(std::span<const RailId> lower, std::span<const RailId> higher) {
    std::vector<bool> lower_used(lower.size());
    std::vector<bool> higher_used(higher.size());
    std::vector<RailPair> out;
    for (const auto& [unused, pair] : candidates_of(lower, higher)) {
        if (lower_used[pair.mine] || higher_used[pair.theirs]) continue;
        lower_used[pair.mine] = higher_used[pair.theirs] = true;
        out.push_back(pair);
    }
    if (!out.empty()) return out;
    for (std::size_t i = 0; i < std::min(lower.size(), higher.size()); ++i) out.push_back({i, i});
    return out;
}

}  // namespace

std::vector<RailPair> pair_rails(int my_pe, std::span<const RailId> mine, int pe, std::span<const RailId> theirs) {
    if (my_pe <= pe) return pair_in_order(mine, theirs);
    auto out = pair_in_order(theirs, mine);
    for (RailPair& each : out) std::swap(each.mine, each.theirs);
    return out;
}

std::string pairing_reason(const RailId& mine, const RailId& theirs) {
    if (mine.number == theirs.number) return fmt::format("rail {} on both ends", mine.number);
    const bool of_one_rail = penalty(mine, theirs).has_value();
    return fmt::format("rails {} and {}{}", mine.number, theirs.number,
                       of_one_rail ? " in one subnet" : ", no rail in common");
}

}  // namespace npushmem
