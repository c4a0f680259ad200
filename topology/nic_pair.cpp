#include "topology/nic_pair.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace npushmem::topology {

std::vector<NicPair> pair_nics(const PeAssignment& mine, const PeAssignment& peer) {
    std::vector<NicPair> pairs;
    if (peer.nics.empty()) return pairs;
    for (std::size_t i = 0; i < mine.nics.size(); ++i) {
        const auto same = std::find_if(peer.nics.begin(), peer.nics.end(),
                                       [&](const NicChoice& nic) { return nic.rail == mine.nics[i].rail; });
        pairs.push_back({mine.nics[i], same != peer.nics.end() ? *same : peer.nics[i % peer.nics.size()]});
    }
    std::stable_partition(pairs.begin(), pairs.end(), [](const NicPair& pair) { return pair.same_rail(); });
    return pairs;
}

std::string why(const NicPair& pair) {
    if (pair.same_rail()) return fmt::format("rail {} on both ends", pair.mine.rail);
    return fmt::format("rails {0} and {1}, as the peer has no NIC of rail {0}", pair.mine.rail, pair.theirs.rail);
}

}  // namespace npushmem::topology
