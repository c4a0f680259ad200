// The lanes of a wire of several rails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transports/network/rails.hpp"

namespace npushmem::network {

// Assigns each lane a rail, round robin, which carries its short operations. Counts the lane's striped transfers: while
// one is in flight, the lane is not in order, and its loss is not reported, because the report returns the memory to
// its owner. A lost lane starts no operation.
class RailLanes {
public:
    RailLanes(Rails& rails, RailConnections& connections) : rails_(rails), connections_(connections) {}

    // Sets `rail` to the lane's. Code::again: the lane has none yet, or is lost.
    Code choose_rail(LaneId lane_id, std::size_t& rail);
    // The rail of a lane that has one.
    [[nodiscard]] std::size_t rail(LaneId lane_id) { return lane(lane_id).rail; }
    [[nodiscard]] std::vector<LaneId> lanes_on(int pe, std::size_t rail);

    void begin_striped(LaneId lane_id, bool reads);
    void end_striped(LaneId lane_id, bool reads);
    [[nodiscard]] bool has_striped(LaneId lane_id) { return lane(lane_id).striped_transfers > 0; }
    [[nodiscard]] bool in_order(LaneId lane_id) const;

    // Only the first loss is recorded.
    void record_loss(LaneId lane_id, Code code, const std::string& why);
    // Queues the lane's loss, if any, for reporting, unless striped transfers are in flight.
    void queue_loss(LaneId lane_id);
    [[nodiscard]] bool has_queued_losses() const { return !lost_.empty(); }
    // True when there was one. Do not call this from within a rail's progress.
    bool report_losses(WireListener& listener);

    // The peer is no longer used: its lanes' losses are not reported.
    void forget(int pe);
    // The lane has no rail any more.
    void close(LaneId lane_id);

private:
    static constexpr std::size_t no_rail = ~std::size_t{0};
    struct Loss {
        Code code;
        std::string why;
    };
    struct Lane {
        std::size_t rail = no_rail;
        std::uint32_t striped_transfers = 0;  // in flight
        std::uint32_t striped_writes = 0;     // of them, writes
        std::optional<Loss> loss;             // to be reported when no striped transfer is in flight
    };

    std::vector<Lane>& lanes(int pe);
    Lane& lane(LaneId lane_id);

    Rails& rails_;
    RailConnections& connections_;
    std::vector<std::vector<Lane>> lanes_;       // by peer, up to the highest used
    std::vector<std::pair<LaneId, Loss>> lost_;  // to be reported
};

}  // namespace npushmem::network
