// Several wires of one kind as one, for a PE with several ports: its rails. Which port of a PE is connected to which of
// its peer is decided by pair_ports (port_pairs.hpp), in the same way by both; ports in no pair are not used between
// the two. The first rail of a peer is the one of the first pair.
//
// Each lane has a rail, in turn from the first on, and everything small goes over it: lanes of their own are what
// contexts have. Long writes and reads are cut into a part for each rail that is ready. Parts overtake each other and
// what is posted behind them: while such a write is under way, the wire says that its way is not in order, and
// whoever needs the order waits for completions. A signal behind such data leaves when all parts have arrived.
//
// The first rail is what the peer depends on: without it the peer is lost. With another one only the lanes are lost
// that go over it, or that have a write with a part there under way, as what is fenced behind that must not arrive
// without it; for the first lane that is the peer. Later operations take the other rails. A part that fails while its
// connection holds, for want of memory that could be registered, fails its operation alone, as it does over one wire.
//
// Of a lost lane is told when none of its operations is under way over other rails any more: who is told has its
// memory back. Until then nothing of it begins, and what is posted there is to be tried again.
//
// Addresses and keys are those of the rails, one behind the other and of one length, so that a peer that has one port,
// and none of this, takes the first.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "transports/network/combined_descriptor.hpp"
#include "transports/network/port_pairs.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::network {

class RailsWire final : public Wire {
public:
    struct Rail {
        std::unique_ptr<Wire> wire;
        std::uint64_t bits_per_second = 0;  // long operations are cut in this proportion
    };
    // Two or more wires of the same dialect, which keep the order and whose completions tell (Delivery). Operations of
    // at least `stripe_bytes` are cut; 0: none is.
    RailsWire(int my_pe, std::vector<Rail> rails, std::uint64_t stripe_bytes);

    Result<Bytes> address() override;
    Result<std::string> route_to(int pe, std::span<const std::byte> address) override;
    Status link(int pe, std::span<const std::byte> address) override;
    Result<WireMemory> register_memory(void* base, std::uint64_t bytes) override;
    void deregister_memory(std::uint64_t number) override;
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) override;
    void release_key(std::uint64_t key) override;
    Code write(const RemotePlace& to, const void* from, std::uint64_t bytes, WireContext& context) override;
    Code read(const RemotePlace& from, void* to, std::uint64_t bytes, WireContext& context) override;
    Code atomic(const RemotePlace& at, const npushmem_atomic& op, WireContext& context) override;
    Code write_signal(const RemotePlace& to, const void* from, std::uint64_t bytes, const RemotePlace& at,
                      std::uint64_t signal, WireContext& context) override;
    Code send(Way way, std::span<const std::byte> head, std::span<const std::byte> rest) override;
    [[nodiscard]] std::string why() const override { return why_; }
    Readiness readiness(Way way) override;
    [[nodiscard]] bool in_order(Way way) const override;
    void forget(int pe) override;
    void close(Way way) override;
    bool progress(WireListener& listener) override;
    [[nodiscard]] int descriptor() const override { return descriptor_.get(); }
    bool prepare_to_wait(Awaited what) override;

private:
    class Ear;

    static constexpr std::size_t not_chosen = ~std::size_t{0};
    struct LaneLoss {
        Code code;
        std::string why;
    };
    struct Lane {
        std::size_t rail = not_chosen;
        std::uint32_t cuts = 0;        // under way
        std::uint32_t cut_writes = 0;  // of them
        std::optional<LaneLoss> loss;  // to be told when no cut is under way
    };
    struct Peer {
        std::vector<PortPair> pairs;  // with own rails and the peer's ports; empty: not linked
        std::size_t ports = 0;        // of the peer
        std::vector<bool> lost;       // by rail
        std::vector<Lane> lanes;      // as many as have been used
    };
    struct Keys {
        std::vector<std::uint64_t> of;  // by rail; 0: that rail is in no pair with the peer
    };
    // An operation that was cut, from its first part to when it is told of.
    struct Cut {
        WireContext* context = nullptr;  // null: not in use
        Way way;
        bool reads = false;
        bool abandoned = false;  // its way is somebody else's by now
        bool broken = false;     // a part was lost with its connection
        std::uint32_t left = 0;  // parts that are not over
        Code code = Code::ok;    // of the first that failed, but a lost peer's before others
        std::string why;
        std::optional<RemotePlace> signal_at;  // once all parts have arrived
        std::uint64_t signal = 0;
    };
    struct Part : WireContext {
        Cut* of = nullptr;
        std::size_t rail = 0;
        RemotePlace there{};  // as the rail names it
        std::byte* here = nullptr;
        std::uint64_t bytes = 0;
    };
    struct Over {
        Part* part;
        Code code;
        std::string why;
    };
    struct Loss {
        int pe;
        std::size_t rail;
        std::string why;
    };
    struct Share {
        std::size_t rail;
        std::uint64_t begin;
        std::uint64_t end;
    };

    Status open();
    void release(const Keys& keys);
    Result<std::vector<PortPair>> pairs_with(const PeerPorts& peer);
    // The rail that the peer depends on.
    [[nodiscard]] std::size_t first_rail(int pe) const;
    void take_traits();
    [[nodiscard]] Wire& rail(std::size_t index) const { return *rails_[index].wire; }
    Peer& peer(int pe);
    Lane& lane(Way way);
    Code choose_rail(Way way, std::size_t& out);
    bool is_ready(int pe, std::size_t index);
    [[nodiscard]] RemotePlace on(std::size_t index, const RemotePlace& place, std::uint32_t lane) const;
    // What a call to a rail gave, as the caller is to see it.
    Code seen(std::size_t index, Way way, Code code);
    // A failure of that rail, as the peer's other rails see it; why() says more.
    Code meant(std::size_t index, int pe, Code code);
    [[nodiscard]] std::string named(std::size_t index, const std::string& why) const;
    void note_loss(int pe, std::size_t index, const std::string& why);
    void lose_rail(const Loss& loss);
    void lose_lane(Way way, Code code, const std::string& why);
    // Nothing of the lane begins any more.
    void note_lane_loss(Way way, Code code, const std::string& why);
    // To be told, unless cuts are under way or there is none.
    void end_lane_loss(Way way);
    // Not from within a rail's progress.
    bool tell_lost_lanes(WireListener& listener);
    // Cut operations
    std::vector<Share> shares_of(const RemotePlace& place, std::size_t own, std::uint64_t bytes);
    Code cut(const std::vector<Share>& shares, const RemotePlace& place, std::byte* local, Cut what);
    Part& new_part(Cut& of, const Share& share, const RemotePlace& place, std::byte* local);
    Code post(Part& part);
    void post_or_wait(Part& part);
    bool post_waiting();
    bool end_parts(WireListener& listener);
    void part_ended(WireListener& listener, Part& part, Code code, const std::string& why);
    void send_signal(Cut& of);
    [[nodiscard]] bool has_lost_connection(const Part& part);
    void end_cut(WireListener& listener, Cut& of);
    void fail_cuts(Way way, const std::string& why);
    void abandon_cuts(Way way, bool of_all_lanes, const char* why);

    int my_pe_;
    std::vector<Peer> peers_;
    std::uint64_t stripe_bytes_;
    std::string why_;
    std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> numbers_;  // of registered memory, by rail
    std::uint64_t last_number_ = 0;
    std::unordered_map<std::uint64_t, Keys> keys_;
    std::uint64_t last_key_ = 0;
    std::deque<Cut> cuts_;
    std::vector<Cut*> free_cuts_;
    std::deque<Part> parts_;
    std::vector<Part*> free_parts_;
    std::vector<Part*> waiting_;                        // for room
    std::vector<Over> over_;                            // without having been posted
    std::vector<Loss> losses_;                          // to be told
    std::vector<std::pair<Way, LaneLoss>> lost_lanes_;  // likewise
    std::size_t address_bytes_ = 0;
    std::vector<Rail> rails_;
    CombinedDescriptor descriptor_;  // last: watches what the rails have
};

}  // namespace npushmem::network
