// SPDX-License-Identifier: BSD-3-Clause
// What the wire's events mean for peers, lanes and operations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "npushmem/plugin/host.hpp"
#include "transports/network/message_keys.hpp"
#include "transports/network/network_memory.hpp"
#include "transports/network/outgoing.hpp"
#include "transports/network/peer_lanes.hpp"
#include "transports/network/peer_monitor.hpp"
#include "transports/network/target_handler.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::network {

// Finishes operations, answers messages of peers, and ends everything that depends on a lost lane or peer. The
// transport's lock guards it.
class WireEventHandler final : public WireListener {
public:
    // `host` logs warnings.
    WireEventHandler(Host host, int my_pe, const std::unique_ptr<Wire>& wire, EventQueue& events, PeerMonitor& peers,
                     MessageKeys& keys, PeerLanes& lanes, const NetworkMemory& memory, OutgoingOperations& operations);

    void completed(WireContext& context, Code code, const std::string& why) override;
    void arrived(std::span<const std::byte> message) override;
    void lost(LaneId lane_id, Code code, const std::string& why) override;
    void closed(int pe) override { forget(pe); }
    void active(int pe) override { peers_.record_activity(pe); }
    // The peer has died or left, as the caller knows: ends its operations and its connection. Reports an event only if
    // operations were under way.
    void forget(int pe) { forget(pe, {}); }
    // Checks every peer for silence. Call this every tick.
    void check_peers();

private:
    void send_deferred_signal(Operation& operation);
    void reject();
    void handle_hello(const MessageHeader& head, std::span<const std::byte> payload);
    void handle_answer(const MessageHeader& head, std::span<const std::byte> message);
    void lose_peer(int pe, Code code, const std::string& why);
    using Excepted = std::function<bool(const Operation&)>;
    // Except for these operations.
    void forget(int pe, const Excepted& excepted);
    // Ends the operations and the connection of a peer whose loss is recorded. Returns the number of operations whose
    // callers get `code`.
    int end_peer(int pe, Code code, const Excepted& excepted = {});
    void lose_lane(LaneId lane_id, Code code, const std::string& why);
    void check_peer(int pe);

    Host host_;
    int my_pe_;
    const std::unique_ptr<Wire>& wire_;
    EventQueue& events_;
    PeerMonitor& peers_;
    MessageKeys& keys_;
    PeerLanes& lanes_;
    OutgoingOperations& operations_;
    TargetHandler target_;
    std::uint64_t rejected_ = 0;  // messages that no PE of this job has sent
};

}  // namespace npushmem::network
