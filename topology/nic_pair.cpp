#include "topology/nic_pair.hpp"

#include "core/base/nic_rails.hpp"

namespace npushmem::topology {
namespace {

std::vector<RailId> rail_ids(const PeAssignment& pe) {
    std::vector<RailId> out;
    for (const auto& nic : pe.nics) out.push_back({nic.rail_number, false, {}});
    return out;
}

}  // namespace

std::vector<NicPair> pair_nics(const PeAssignment& mine, const PeAssignment& peer) {
    const auto own = rail_ids(mine);
    const auto others = rail_ids(peer);
    std::vector<NicPair> out;
    for (const auto& [i, j] : pair_rails(static_cast<int>(mine.pe), own, static_cast<int>(peer.pe), others))
        out.push_back({mine.nics[i], peer.nics[j], pairing_reason(own[i], others[j])});
    return out;
}

}  // namespace npushmem::topology
