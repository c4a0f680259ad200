// SPDX-License-Identifier: BSD-3-Clause
// The ports of a PE, each with a wire, and their connections to the ports of its peers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transports/network/combined_descriptor.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::network {

struct PortPair {
    std::size_t mine = 0;
    std::size_t theirs = 0;
    std::string text;  // "mlx5_0:1 -> 10.0.0.2, rail 0 on both ends"
};

// A peer and the addresses of its ports, concatenated, of `bytes_of_one` bytes each.
struct PeerPorts {
    int pe = -1;
    std::span<const std::byte> addresses;
    std::size_t bytes_of_one = 1;

    [[nodiscard]] std::size_t count() const { return addresses.size() / bytes_of_one; }
    [[nodiscard]] std::span<const std::byte> address(std::size_t port) const {
        return addresses.subspan(port * bytes_of_one, bytes_of_one);
    }
};

// Decides which ports of this PE and of a peer are connected, from the addresses that both exchange. Both PEs get the
// same pairs; the wires connect them and the map of the job shows them. Returns at least one pair, as pair_rails does.
// `mine`: the wires of this PE's ports, at least one. Fails with Code::protocol when the peer's bytes are not
// addresses.
Result<std::vector<PortPair>> pair_ports(int my_pe, std::span<const Wire* const> mine, const PeerPorts& theirs);

// The ports of this PE, its rails, and the descriptor that is readable when one of them has work.
class Rails {
public:
    struct Rail {
        std::unique_ptr<Wire> wire;
        std::uint64_t bits_per_second = 0;  // long operations are split in this proportion
    };

    // Two or more wires of the same protocol.
    explicit Rails(std::vector<Rail> rails) : rails_(std::move(rails)) {}

    [[nodiscard]] std::size_t count() const { return rails_.size(); }
    [[nodiscard]] Wire& at(std::size_t index) const { return *rails_[index].wire; }
    [[nodiscard]] std::uint64_t bits_per_second(std::size_t index) const { return rails_[index].bits_per_second; }
    // For people: the text and the rail that it is about.
    [[nodiscard]] std::string with_name(std::size_t index, const std::string& why) const;
    // The traits that all rails have.
    [[nodiscard]] WireTraits combined_traits() const;

    // Needed once, before address_bytes and RailConnections.
    Status open();
    // The size of one rail's address; 0: not open.
    [[nodiscard]] std::size_t address_bytes() const { return address_bytes_; }
    // The rails' addresses, concatenated.
    [[nodiscard]] Result<Bytes> address() const;

    // Readable when a rail has work, or while awake.
    [[nodiscard]] int descriptor() const { return descriptor_.get(); }
    void wake() { descriptor_.wake(); }
    void rest() { descriptor_.rest(); }

private:
    std::size_t address_bytes_ = 0;
    std::vector<Rail> rails_;
    CombinedDescriptor descriptor_;  // last member: watches descriptors of the rails
};

// Connects rails to the ports of each peer, and knows which connections are lost. The first rail of a peer is the one
// of the first pair. The peer depends on it.
class RailConnections {
public:
    struct Loss {
        int pe;
        std::size_t rail;
        std::string why;
    };

    RailConnections(int my_pe, Rails& rails) : my_pe_(my_pe), rails_(rails) {}

    [[nodiscard]] Result<std::string> route_to(int pe, std::span<const std::byte> address) const;
    Status add_peer(int pe, std::span<const std::byte> address);
    // Of own rails and the peer's ports; empty: the peer was not added.
    [[nodiscard]] const std::vector<PortPair>& pairs(int pe) { return peer(pe).pairs; }
    // Number of the peer's ports.
    [[nodiscard]] std::size_t ports(int pe) { return peer(pe).ports; }
    // The rail on which the peer depends.
    [[nodiscard]] std::size_t first(int pe) const;

    [[nodiscard]] bool is_ready(int pe, std::size_t rail) {
        return !is_lost(pe, rail) && rails_.at(rail).readiness({pe}) == Readiness::ready;
    }
    [[nodiscard]] bool is_lost(int pe, std::size_t rail) {
        const std::vector<bool>& lost = peer(pe).lost;
        return rail < lost.size() && lost[rail];
    }
    // The rail is no longer used for the peer. False when it was lost before.
    bool lose(int pe, std::size_t rail);

    // Translates a failure of that rail, whose wire knows the details, for the caller. The loss of a rail other than
    // the first waits for take_losses().
    Code translate_failure(std::size_t rail, int pe, Code code);
    [[nodiscard]] const std::string& last_error() const { return last_error_; }
    [[nodiscard]] bool has_losses() const { return !losses_.empty(); }
    std::vector<Loss> take_losses() { return std::exchange(losses_, {}); }

private:
    struct Peer {
        std::vector<PortPair> pairs;
        std::size_t ports = 0;
        std::vector<bool> lost;  // by rail
    };

    Peer& peer(int pe);
    [[nodiscard]] Result<std::vector<PortPair>> pairs_with(const PeerPorts& peer) const;

    int my_pe_;
    Rails& rails_;
    std::vector<Peer> peers_;
    std::string last_error_;
    std::vector<Loss> losses_;  // to be handled
};

// Memory that all rails have registered or imported. Keys are those of the rails, concatenated and of equal length.
class RailMemory {
public:
    RailMemory(Rails& rails, RailConnections& connections) : rails_(rails), connections_(connections) {}

    Result<WireMemory> register_memory(void* base, std::uint64_t bytes);
    void deregister_memory(std::uint64_t number);
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key);
    void release_key(std::uint64_t key);
    // The place on a lane of that rail.
    [[nodiscard]] RemoteAddress on(std::size_t rail, const RemoteAddress& place, std::uint32_t lane) const {
        return {{place.lane_id.pe, lane}, keys_.at(place.key)[rail], place.base, place.offset};
    }

private:
    using RailKeys = std::vector<std::uint64_t>;  // by rail; 0: the rail is not paired with the peer

    void release(const RailKeys& keys);

    Rails& rails_;
    RailConnections& connections_;
    std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> numbers_;  // numbers of registered memory, by rail
    std::uint64_t last_number_ = 0;
    std::unordered_map<std::uint64_t, RailKeys> keys_;
    std::uint64_t last_key_ = 0;
};

// The lanes of a wire of several rails.

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
