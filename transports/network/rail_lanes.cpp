#include "transports/network/rail_lanes.hpp"

#include <algorithm>

namespace npushmem::network {

std::vector<RailLanes::Lane>& RailLanes::lanes(int pe) {
    const auto index = static_cast<std::size_t>(pe);
    if (index >= lanes_.size()) lanes_.resize(index + 1);
    return lanes_[index];
}

RailLanes::Lane& RailLanes::lane(LaneId lane_id) {
    auto& of_peer = lanes(lane_id.pe);
    if (lane_id.lane >= of_peer.size()) of_peer.resize(lane_id.lane + 1);
    return of_peer[lane_id.lane];
}

// Skips rails on which the peer does not answer, except the first.
Code RailLanes::choose_rail(LaneId lane_id, std::size_t& rail) {
    Lane& of = lane(lane_id);
    if (of.loss) return Code::again;
    if (of.rail == no_rail) {
        const std::vector<PortPair>& paired = connections_.pairs(lane_id.pe);
        const std::size_t first = connections_.first(lane_id.pe);
        const std::size_t pairs = std::max<std::size_t>(paired.size(), 1);
        for (std::size_t i = 0; i < pairs && of.rail == no_rail; ++i) {
            const std::size_t turn = (lane_id.lane + i) % pairs;
            const std::size_t next = turn == 0 ? first : paired[turn].mine;
            const Readiness found = next == first                            ? Readiness::ready
                                    : connections_.is_lost(lane_id.pe, next) ? Readiness::unreachable
                                                                             : rails_.at(next).readiness({lane_id.pe});
            if (found == Readiness::connecting) return Code::again;
            if (found == Readiness::ready) of.rail = next;
        }
    }
    rail = of.rail;
    return Code::ok;
}

std::vector<LaneId> RailLanes::lanes_on(int pe, std::size_t rail) {
    std::vector<LaneId> out;
    for (std::uint32_t i = 0; i < lanes(pe).size(); ++i)
        if (lanes(pe)[i].rail == rail) out.push_back({pe, i});
    return out;
}

void RailLanes::begin_striped(LaneId lane_id, bool reads) {
    ++lane(lane_id).striped_transfers;
    if (!reads) ++lane(lane_id).striped_writes;
}

void RailLanes::end_striped(LaneId lane_id, bool reads) {
    --lane(lane_id).striped_transfers;
    if (!reads) --lane(lane_id).striped_writes;
}

bool RailLanes::in_order(LaneId lane_id) const {
    const auto pe = static_cast<std::size_t>(lane_id.pe);
    if (pe >= lanes_.size() || lane_id.lane >= lanes_[pe].size()) return true;
    return lanes_[pe][lane_id.lane].striped_writes == 0;
}

void RailLanes::record_loss(LaneId lane_id, Code code, const std::string& why) {
    Lane& of = lane(lane_id);
    if (!of.loss) of.loss = Loss{code, why};
}

void RailLanes::queue_loss(LaneId lane_id) {
    Lane& of = lane(lane_id);
    if (!of.loss || of.striped_transfers > 0) return;
    lost_.emplace_back(lane_id, *std::exchange(of.loss, std::nullopt));
}

// Also fails the operations of such a lane that are in flight over its own rail: the loss has been reported to their
// callers, so nothing may be written to their memory any more.
bool RailLanes::report_losses(WireListener& listener) {
    const auto lost = std::exchange(lost_, {});
    for (const auto& [lane_id, loss] : lost) {
        const std::size_t own = rail(lane_id);
        if (own != no_rail && !connections_.is_lost(lane_id.pe, own)) rails_.at(own).close(lane_id);
        listener.lost(lane_id, loss.code, loss.why);
    }
    return !lost.empty();
}

void RailLanes::forget(int pe) {
    for (Lane& each : lanes(pe)) each.loss.reset();
}

void RailLanes::close(LaneId lane_id) {
    lane(lane_id).loss.reset();
    const std::size_t own = std::exchange(lane(lane_id).rail, no_rail);
    if (own != no_rail) rails_.at(own).close(lane_id);
}

}  // namespace npushmem::network
