// Which ports of this PE and of a peer are connected, by the addresses that both exchange: the map of the job shows
// what this returns, and the wires connect what this returns.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "transports/network/progress_thread.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::network {

struct PortPair {
    std::size_t mine = 0;
    std::size_t theirs = 0;
    std::string text;  // "mlx5_0:1 -> 10.0.0.2, rail 0 on both ends"
};

// The peer whose ports have these addresses, one behind the other, of `bytes_of_one` bytes each.
struct PeerPorts {
    int pe = -1;
    std::span<const std::byte> addresses;
    std::size_t bytes_of_one = 1;

    [[nodiscard]] std::size_t count() const { return addresses.size() / bytes_of_one; }
    [[nodiscard]] std::span<const std::byte> address(std::size_t port) const {
        return addresses.subspan(port * bytes_of_one, bytes_of_one);
    }
};

// The pairs as pair_rails gives them, at least one. `mine`: the wires of this PE's ports, at least one. Fails with
// Code::protocol when the peer's bytes are no addresses.
Result<std::vector<PortPair>> pair_ports(int my_pe, std::span<const Wire* const> mine, const PeerPorts& theirs);

// Several wires of one kind as one, for a PE with several ports: its rails. Which port of a PE is connected to which of
// its peer is decided by pair_ports (port_pairs.hpp), in the same way by both; ports in no pair are not used between
// the two. The first rail of a peer is the one of the first pair.
//
// Each lane has a rail, in turn from the first on, and everything small goes over it: lanes of their own are what
// contexts have. Long writes and reads are split into a stripe for each rail that is ready. Stripes overtake each other
// and what is posted behind them: while such a write is under way, the wire says that its lane is not in order, and
// whoever needs the order waits for completions. A signal behind such data leaves when all stripes have arrived.
//
// The first rail is what the peer depends on: without it the peer is lost. With another one only the lanes are lost
// that go over it, or that have a write with a stripe there in flight, as what is fenced behind that must not arrive
// without it; for the first lane that is the peer. Later operations take the other rails. A stripe that fails while its
// connection holds, for want of memory that could be registered, fails its operation alone, as it does over one wire.
//
// Of a lost lane is told when none of its operations is under way over other rails any more: who is told has its
// memory back. Until then nothing of it begins, and what is posted there is to be tried again.
//
// Addresses and keys are those of the rails, one behind the other and of one length, so that a peer that has one port,
// and none of this, takes the first.
class MultiRailWire final : public Wire {
public:
    struct Rail {
        std::unique_ptr<Wire> wire;
        std::uint64_t bits_per_second = 0;  // long operations are split in this proportion
    };
    // Two or more wires of the same protocol, which keep the order and whose completions tell (Delivery). Operations of
    // at least `stripe_bytes` are split; 0: none is.
    MultiRailWire(int my_pe, std::vector<Rail> rails, std::uint64_t stripe_bytes);

    Result<Bytes> address() override;
    Result<std::string> route_to(int pe, std::span<const std::byte> address) override;
    Status add_peer(int pe, std::span<const std::byte> address) override;
    Result<WireMemory> register_memory(void* base, std::uint64_t bytes) override;
    void deregister_memory(std::uint64_t number) override;
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) override;
    void release_key(std::uint64_t key) override;
    Code write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) override;
    Code read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) override;
    Code atomic(const RemoteAddress& at, const npushmem_atomic& op, WireContext& context) override;
    Code write_signal(const RemoteAddress& to, const void* from, std::uint64_t bytes, const RemoteAddress& at,
                      std::uint64_t signal, WireContext& context) override;
    Code send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) override;
    [[nodiscard]] std::string last_error() const override { return last_error_; }
    Readiness readiness(LaneId lane_id) override;
    [[nodiscard]] bool in_order(LaneId lane_id) const override;
    void forget(int pe) override;
    void close(LaneId lane_id) override;
    bool progress(WireListener& listener) override;
    [[nodiscard]] int descriptor() const override { return descriptor_.get(); }
    bool prepare_to_wait(WakeEvents what) override;

private:
    class RailListener;

    static constexpr std::size_t no_rail = ~std::size_t{0};
    struct LaneLoss {
        Code code;
        std::string why;
    };
    struct Lane {
        std::size_t rail = no_rail;
        std::uint32_t striped_transfers = 0;  // under way
        std::uint32_t striped_writes = 0;     // of them
        std::optional<LaneLoss> loss;         // to be reported when no striped transfer is in flight
    };
    struct Peer {
        std::vector<PortPair> pairs;  // with own rails and the peer's ports; empty: not linked
        std::size_t ports = 0;        // of the peer
        std::vector<bool> lost;       // by rail
        std::vector<Lane> lanes;      // as many as have been used
    };
    struct RailKeys {
        std::vector<std::uint64_t> of;  // by rail; 0: that rail is in no pair with the peer
    };
    // An operation that was split, from its first stripe until it is reported.
    struct StripedTransfer {
        WireContext* context = nullptr;  // null: not in use
        LaneId lane_id;
        bool reads = false;
        bool abandoned = false;        // its lane is somebody else's by now
        bool lost_connection = false;  // a stripe was lost with its connection
        std::uint32_t left = 0;        // stripes that are not complete
        Code code = Code::ok;          // of the first that failed, but a lost peer's before others
        std::string why;
        std::optional<RemoteAddress> signal_at;  // once all stripes have arrived
        std::uint64_t signal = 0;
    };
    struct Stripe : WireContext {
        StripedTransfer* of = nullptr;
        std::size_t rail = 0;
        RemoteAddress there{};  // as the rail names it
        std::byte* here = nullptr;
        std::uint64_t bytes = 0;
    };
    struct UnpostedStripe {
        Stripe* stripe;
        Code code;
        std::string why;
    };
    struct RailLoss {
        int pe;
        std::size_t rail;
        std::string why;
    };
    struct StripeRange {
        std::size_t rail;
        std::uint64_t begin;
        std::uint64_t end;
    };

    Status open();
    void release(const RailKeys& keys);
    Result<std::vector<PortPair>> pairs_with(const PeerPorts& peer);
    // The rail that the peer depends on.
    [[nodiscard]] std::size_t first_rail(int pe) const;
    void combine_traits();
    [[nodiscard]] Wire& rail(std::size_t index) const { return *rails_[index].wire; }
    Peer& peer(int pe);
    Lane& lane(LaneId lane_id);
    Code choose_rail(LaneId lane_id, std::size_t& out);
    bool is_ready(int pe, std::size_t index);
    [[nodiscard]] RemoteAddress on(std::size_t index, const RemoteAddress& place, std::uint32_t lane) const;
    // What a call to a rail gave, as the caller is to see it.
    Code translate_code(std::size_t index, LaneId lane_id, Code code);
    // A failure of that rail, as the peer's other rails see it; last_error() says more.
    Code translate_failure(std::size_t index, int pe, Code code);
    [[nodiscard]] std::string with_rail_name(std::size_t index, const std::string& why) const;
    void record_rail_loss(int pe, std::size_t index, const std::string& why);
    void lose_rail(const RailLoss& loss);
    void lose_lane(LaneId lane_id, Code code, const std::string& why);
    // Nothing of the lane begins any more.
    void record_lane_loss(LaneId lane_id, Code code, const std::string& why);
    // Queues the lane's loss for reporting, unless striped transfers are in flight or there is none.
    void queue_lane_loss(LaneId lane_id);
    // Not from within a rail's progress.
    bool report_lost_lanes(WireListener& listener);
    // Striped transfers
    std::vector<StripeRange> stripe_ranges(const RemoteAddress& place, std::size_t own, std::uint64_t bytes);
    Code post_striped(const std::vector<StripeRange>& ranges, const RemoteAddress& place, std::byte* local,
                      StripedTransfer what);
    Stripe& new_stripe(StripedTransfer& of, const StripeRange& range, const RemoteAddress& place, std::byte* local);
    Code post(Stripe& stripe);
    void post_or_wait(Stripe& stripe);
    bool post_waiting();
    bool finish_unposted(WireListener& listener);
    void stripe_completed(WireListener& listener, Stripe& stripe, Code code, const std::string& why);
    void send_signal(StripedTransfer& of);
    [[nodiscard]] bool has_lost_connection(const Stripe& stripe);
    void finish_striped(WireListener& listener, StripedTransfer& of);
    void fail_striped(LaneId lane_id, const std::string& why);
    void abandon_striped(LaneId lane_id, bool of_all_lanes, const char* why);

    int my_pe_;
    std::vector<Peer> peers_;
    std::uint64_t stripe_bytes_;
    std::string last_error_;
    std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> numbers_;  // of registered memory, by rail
    std::uint64_t last_number_ = 0;
    std::unordered_map<std::uint64_t, RailKeys> keys_;
    std::uint64_t last_key_ = 0;
    std::deque<StripedTransfer> striped_;
    std::vector<StripedTransfer*> free_striped_;
    std::deque<Stripe> stripes_;
    std::vector<Stripe*> free_stripes_;
    std::vector<Stripe*> waiting_for_room_;                // for room
    std::vector<UnpostedStripe> unposted_;                 // without having been posted
    std::vector<RailLoss> losses_;                         // to be told
    std::vector<std::pair<LaneId, LaneLoss>> lost_lanes_;  // likewise
    std::size_t address_bytes_ = 0;
    std::vector<Rail> rails_;
    CombinedDescriptor descriptor_;  // last: watches what the rails have
};

}  // namespace npushmem::network
