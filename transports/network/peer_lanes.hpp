// SPDX-License-Identifier: BSD-3-Clause
// The lanes to the peers.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "transports/network/message_keys.hpp"
#include "transports/network/peer_monitor.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::network {

// Assigns lanes to queues, and controls the flow of messages on each: a message that must not be rejected waits in the
// lane's backlog for room, and no later message overtakes it. The transport's lock guards it.
//
// Queues to one peer use separate lanes: the first queue uses lane 0, which always exists, each further one the lowest
// free lane. When no lane is free, queues share. A lane stays connected for the next queue, because connecting is slow,
// unless it is lost or its queue left operations in flight.
class PeerLanes {
public:
    // `max_lanes`: per peer. `keys` signs the messages. `listener` gets the losses that posting reveals; it may call
    // back.
    PeerLanes(const PeerMonitor& peers, std::uint32_t max_lanes, const std::unique_ptr<Wire>& wire, MessageKeys& keys,
              WireListener& listener);

    // The lowest unused lane. When all are used, the usable one with the fewest users.
    std::uint32_t acquire(int pe);
    void release(LaneId lane_id);
    // No other queue may use the lane: its last user's release closes it.
    void close_when_released(LaneId lane_id) { lane(lane_id).must_close = true; }

    // Code::again: no room; nothing was sent. Any other failure: the lane is lost, as the listener knows.
    Code send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest = {});
    // Sends the message now, or behind the backlog when there is room.
    void send_or_queue(LaneId lane_id, std::span<const std::byte> message);
    [[nodiscard]] bool has_backlog() const { return !with_backlog_.empty(); }
    [[nodiscard]] bool has_backlog(LaneId lane_id) { return !lane(lane_id).backlog.empty(); }
    // True when the wire has accepted a message on the lane.
    [[nodiscard]] bool has_sent(LaneId lane_id) { return lane(lane_id).has_sent; }
    void send_backlogs();

    // Tells the listener that the wire has just rejected an operation on this lane with this code.
    void report_loss(LaneId lane_id, Code code) { listener_.lost(lane_id, code, wire_->last_error()); }
    // Drops the lane's backlog. The lane accepts no more messages and is closed when released.
    void lose(LaneId lane_id, Code code);
    void drop_backlogs(int pe);

private:
    struct Lane {
        std::uint32_t users = 0;    // flows
        bool must_close = false;    // no other queue may use it
        bool has_sent = false;      // a message
        Code lost = Code::ok;       // not ok: the lane is lost
        std::deque<Bytes> backlog;  // messages that wait for room
    };

    Lane& lane(LaneId lane_id);
    // True when the backlog is empty.
    bool send_backlog(LaneId lane_id);
    Code send_signed(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest);

    const PeerMonitor& peers_;
    std::uint32_t max_lanes_;
    const std::unique_ptr<Wire>& wire_;
    MessageKeys& keys_;
    WireListener& listener_;
    std::vector<std::vector<Lane>> lanes_;  // by peer, up to the highest used; empty for an unknown peer
    std::vector<LaneId> with_backlog_;
};

}  // namespace npushmem::network
