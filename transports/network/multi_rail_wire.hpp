// Several ports of a PE as one wire.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
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

// Combines several wires of one kind, for a PE with several ports: its rails. pair_ports decides which port of a PE is
// connected to which port of its peer. Unpaired ports are not used between the two. The first rail of a peer is the one
// of the first pair.
//
// Each lane has a rail, assigned round robin, which carries its short operations. Each context has a lane of its own.
// Long writes and reads are split into one stripe for each rail that is ready. Stripes overtake each other and later
// operations: while a striped write is in flight, in_order() is false for its lane, and callers that need the order
// wait for completions. A signal after striped data leaves when all stripes have arrived.
//
// The peer depends on the first rail: without it the peer is lost. When another rail is lost, only these lanes are
// lost: lanes assigned to it, and lanes with a write in flight that has a stripe there, because fenced operations after
// that write must not arrive without it. If this includes lane 0, the peer is lost. Later operations use the other
// rails. A stripe that fails without loss of its connection, for lack of memory that can be registered, fails only its
// operation, as over one wire.
//
// A lost lane is reported when none of its operations is in flight over other rails any more, because the report
// returns the memory to its owner. Until then the lane starts no operation, and posting returns Code::again.
//
// Addresses and keys are those of the rails, concatenated and of equal length. A peer with a single port, which does
// not use this class, takes the first.
class MultiRailWire final : public Wire {
public:
    struct Rail {
        std::unique_ptr<Wire> wire;
        std::uint64_t bits_per_second = 0;  // long operations are split in this proportion
    };
    // Two or more wires of the same protocol with Delivery::in_order_on_completion. Operations of at least
    // `stripe_bytes` are split; 0: none.
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
        std::uint32_t striped_transfers = 0;  // in flight
        std::uint32_t striped_writes = 0;     // of them, writes
        std::optional<LaneLoss> loss;         // to be reported when no striped transfer is in flight
    };
    struct Peer {
        std::vector<PortPair> pairs;  // of own rails and the peer's ports; empty: not added
        std::size_t ports = 0;        // number of the peer's ports
        std::vector<bool> lost;       // by rail
        std::vector<Lane> lanes;      // up to the highest used
    };
    struct RailKeys {
        std::vector<std::uint64_t> of;  // by rail; 0: the rail is not paired with the peer
    };
    // An operation that was split, from its first stripe until it is reported.
    struct StripedTransfer {
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
        StripedTransfer* of = nullptr;
        std::size_t rail = 0;
        RemoteAddress there{};  // with the key of the rail
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
    // The rail on which the peer depends.
    [[nodiscard]] std::size_t first_rail(int pe) const;
    void combine_traits();
    [[nodiscard]] Wire& rail(std::size_t index) const { return *rails_[index].wire; }
    Peer& peer(int pe);
    Lane& lane(LaneId lane_id);
    Code choose_rail(LaneId lane_id, std::size_t& out);
    bool is_ready(int pe, std::size_t index);
    [[nodiscard]] RemoteAddress on(std::size_t index, const RemoteAddress& place, std::uint32_t lane) const;
    // Translates the result of a call to a rail for the caller.
    Code translate_code(std::size_t index, LaneId lane_id, Code code);
    // Translates a failure of that rail; last_error() gives the details.
    Code translate_failure(std::size_t index, int pe, Code code);
    [[nodiscard]] std::string with_rail_name(std::size_t index, const std::string& why) const;
    void record_rail_loss(int pe, std::size_t index, const std::string& why);
    void lose_rail(const RailLoss& loss);
    void lose_lane(LaneId lane_id, Code code, const std::string& why);
    // Records the loss. The lane starts no further operation.
    void record_lane_loss(LaneId lane_id, Code code, const std::string& why);
    // Queues the lane's loss, if any, for reporting, unless striped transfers are in flight.
    void queue_lane_loss(LaneId lane_id);
    // Do not call this from within a rail's progress.
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
    std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> numbers_;  // numbers of registered memory, by rail
    std::uint64_t last_number_ = 0;
    std::unordered_map<std::uint64_t, RailKeys> keys_;
    std::uint64_t last_key_ = 0;
    std::deque<StripedTransfer> striped_;
    std::vector<StripedTransfer*> free_striped_;
    std::deque<Stripe> stripes_;
    std::vector<Stripe*> free_stripes_;
    std::vector<Stripe*> waiting_for_room_;
    std::vector<UnpostedStripe> unposted_;                 // failed before they were posted
    std::vector<RailLoss> losses_;                         // to be reported
    std::vector<std::pair<LaneId, LaneLoss>> lost_lanes_;  // to be reported
    std::size_t address_bytes_ = 0;
    std::vector<Rail> rails_;
    CombinedDescriptor descriptor_;  // last member: watches descriptors of the rails
};

}  // namespace npushmem::network
