// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/peer_lanes.hpp"

#include <utility>

namespace npushmem::network {

PeerLanes::PeerLanes(const PeerMonitor& peers, std::uint32_t max_lanes, const std::unique_ptr<Wire>& wire,
                     MessageKeys& keys, WireListener& listener)
    : peers_(peers),
      max_lanes_(max_lanes),
      wire_(wire),
      keys_(keys),
      listener_(listener),
      lanes_(static_cast<std::size_t>(peers.count())) {}

PeerLanes::Lane& PeerLanes::lane(LaneId lane_id) {
    auto& lanes = lanes_[static_cast<std::size_t>(lane_id.pe)];
    if (lane_id.lane >= lanes.size()) lanes.resize(lane_id.lane + 1);
    return lanes[lane_id.lane];
}

std::uint32_t PeerLanes::acquire(int pe) {
    auto& lanes = lanes_[static_cast<std::size_t>(pe)];
    const auto load = [&](std::uint32_t i) { return std::pair(lanes[i].lost != Code::ok, lanes[i].users); };
    if (lanes.empty()) lanes.emplace_back();
    std::uint32_t best = 0;
    for (std::uint32_t i = 1; i < max_lanes_ && load(best) > std::pair(false, 0U); ++i) {
        if (i == lanes.size()) lanes.emplace_back();
        if (load(i) < load(best)) best = i;
    }
    ++lanes[best].users;
    return best;
}

void PeerLanes::release(LaneId lane_id) {
    Lane& given = lane(lane_id);
    if (--given.users > 0 || lane_id.lane == 0) return;
    given.backlog.clear();
    given.lost = Code::ok;
    if (std::exchange(given.must_close, false)) wire_->close(lane_id);
}

void PeerLanes::lose(LaneId lane_id, Code code) {
    Lane& over = lane(lane_id);
    over.backlog.clear();
    over.must_close = true;
    over.lost = code;
}

void PeerLanes::drop_backlogs(int pe) {
    for (Lane& each : lanes_[static_cast<std::size_t>(pe)]) each.backlog.clear();
}

// A peer without a hello cannot be answered yet: its request may arrive earlier over another lane.
Code PeerLanes::send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    if (const Code failure = peers_.failure(lane_id.pe); failure != Code::ok) return failure;
    const Lane& over = lane(lane_id);
    if (over.lost != Code::ok) return over.lost;
    if (!peers_.is_added(lane_id.pe) || !over.backlog.empty()) return Code::again;
    const Code sent = send_signed(lane_id, head, rest);
    if (sent != Code::ok && sent != Code::again) report_loss(lane_id, sent);
    return sent;
}

Code PeerLanes::send_signed(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    const Code sent = wire_->send(lane_id, keys_.sign(lane_id.pe, head, rest), rest);
    lane(lane_id).has_sent |= sent == Code::ok;
    return sent;
}

void PeerLanes::send_or_queue(LaneId lane_id, std::span<const std::byte> message) {
    if (send(lane_id, message) != Code::again) return;
    auto& backlog = lane(lane_id).backlog;
    if (backlog.empty()) with_backlog_.push_back(lane_id);
    backlog.emplace_back(message.begin(), message.end());
}

void PeerLanes::send_backlogs() {
    std::erase_if(with_backlog_, [this](LaneId lane_id) { return send_backlog(lane_id); });
}

bool PeerLanes::send_backlog(LaneId lane_id) {
    auto& backlog = lane(lane_id).backlog;
    if (backlog.empty()) return true;  // dropped meanwhile
    if (!peers_.is_added(lane_id.pe)) return false;
    while (!backlog.empty()) {
        const Code sent = send_signed(lane_id, backlog.front(), {});
        if (sent == Code::again) return false;
        if (sent != Code::ok) {
            report_loss(lane_id, sent);
            return true;
        }
        backlog.pop_front();
    }
    return true;
}

}  // namespace npushmem::network
