// SPDX-License-Identifier: BSD-3-Clause
// Operations over several rails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "transports/network/rails.hpp"

namespace npushmem::network {

// Splits long writes and reads into one stripe for each rail that is ready. Stripes overtake each other and later
// operations. A signal after striped data leaves when all stripes have arrived.
//
// A lane with a write in flight that has a stripe on a lost rail is lost, because fenced operations after that write
// must not arrive without it. If this is lane 0, the peer is lost. A stripe that fails without loss of its connection,
// for lack of memory that can be registered, fails only its operation, as over one wire.
class StripedTransfers {
public:
    struct Range {
        std::size_t rail;
        std::uint64_t begin;
        std::uint64_t end;
    };
    // The operation to be split.
    struct Request {
        WireContext* context = nullptr;
        RemoteAddress place{};
        std::byte* local = nullptr;
        bool reads = false;
        std::optional<RemoteAddress> signal_at = std::nullopt;  // on the lane's own rail
        std::uint64_t signal = 0;
    };

    // Operations of at least `stripe_bytes` are split; 0: none.
    StripedTransfers(Rails& rails, RailConnections& connections, RailMemory& memory, RailLanes& lanes,
                     std::uint64_t stripe_bytes)
        : rails_(rails), connections_(connections), memory_(memory), lanes_(lanes), stripe_bytes_(stripe_bytes) {}

    // One range for each rail that is ready, including the lane's own; empty when the transfer is not split.
    std::vector<Range> ranges(const RemoteAddress& place, std::size_t own, std::uint64_t bytes);
    // Other codes than Code::ok are those of the wire of the lane's own rail, which has rejected the first stripe.
    Code post(const std::vector<Range>& ranges, const Request& request);
    // The peer of the stripe that has this context.
    [[nodiscard]] static int pe_of(const WireContext& stripe) {
        return static_cast<const Stripe&>(stripe).of->lane_id.pe;
    }
    void completed(WireListener& listener, WireContext& stripe, Code code, const std::string& why);

    // Posts stripes that wait for room. True when it posted one.
    bool post_waiting();
    // Completes stripes that failed before they were posted. True when there was one.
    bool finish_unposted(WireListener& listener);
    [[nodiscard]] bool has_waiting() const { return !waiting_for_room_.empty(); }
    [[nodiscard]] bool is_idle() const { return waiting_for_room_.empty() && unposted_.empty(); }
    // True when a signal waits for its data.
    [[nodiscard]] bool has_signal() const;

    // Records the lane's loss. Its transfers start no further stripes. Operations in flight there end by themselves.
    void lose_lane(LaneId lane_id, Code code, const std::string& why);
    // The lane has another user now, or its peer is no longer used: later failures are not losses of the lane.
    void abandon(LaneId lane_id, const char* why);
    void abandon(int pe, const char* why);

private:
    // An operation that was split, from its first stripe until it is reported.
    struct Transfer {
        WireContext* context = nullptr;  // null: unused
        LaneId lane_id;
        bool reads = false;
        bool abandoned = false;        // its lane has another user now
        bool lost_connection = false;  // a stripe was lost with its connection
        std::uint32_t left = 0;        // incomplete stripes
        Code code = Code::ok;          // of the first failure; that of a lost peer takes precedence
        std::string why;
        std::optional<RemoteAddress> signal_at;  // sent when all stripes have arrived
        std::uint64_t signal = 0;
    };
    struct Stripe : WireContext {
        Transfer* of = nullptr;
        std::size_t rail = 0;
        RemoteAddress there{};  // with the key of the rail
        std::byte* here = nullptr;
        std::uint64_t bytes = 0;
    };
    struct Unposted {
        Stripe* stripe;
        Code code;
        std::string why;
    };

    Stripe& take_stripe(Transfer& of, std::size_t rail);
    Stripe& new_stripe(Transfer& of, const Range& range, const RemoteAddress& place, std::byte* local);
    Code post_on_wire(Stripe& stripe);
    void post_or_wait(Stripe& stripe);
    void send_signal(Transfer& of);
    [[nodiscard]] bool has_lost_connection(const Stripe& stripe);
    void finish(WireListener& listener, Transfer& of);
    void fail(LaneId lane_id, const std::string& why);

    Rails& rails_;
    RailConnections& connections_;
    RailMemory& memory_;
    RailLanes& lanes_;
    std::uint64_t stripe_bytes_;
    std::deque<Transfer> transfers_;
    std::vector<Transfer*> free_transfers_;
    std::deque<Stripe> stripes_;
    std::vector<Stripe*> free_stripes_;
    std::vector<Stripe*> waiting_for_room_;
    std::vector<Unposted> unposted_;  // failed before they were posted
};

}  // namespace npushmem::network
