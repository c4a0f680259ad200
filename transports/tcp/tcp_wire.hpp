// SPDX-License-Identifier: BSD-3-Clause
// A wire over the kernel's TCP, without a library. Writes and reads name the peer's registered memory, and the peer's
// process carries them out: data goes from the caller's memory into the kernel, and from the kernel to its place.
// Frames of one lane take effect in the order of posting (Delivery::in_order).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/poller.hpp"
#include "core/base/sip_hash.hpp"
#include "core/base/socket.hpp"
#include "transports/network/target_handler.hpp"
#include "transports/network/wire.hpp"
#include "transports/shared/wake_timer.hpp"
#include "transports/tcp/connection.hpp"

namespace npushmem::tcp {

class TcpWire final : public network::Wire, private ConnectionOwner {
public:
    // Listens on this address; port 0: the kernel chooses. `npes`: peers are 0 to npes - 1. `lanes`: the maximum per
    // peer. Short frames that follow each other within `max_gap` may wait for each other. 0: none does, as no thread
    // calls progress() when alarm() is readable.
    static Result<std::unique_ptr<network::Wire>> open(const Address& where, int my_pe, int npes, std::uint32_t lanes,
                                                       std::chrono::microseconds max_gap);
    static constexpr std::chrono::microseconds usual_gap{20};
    ~TcpWire() override;

    Result<Bytes> address() override;
    Result<std::string> route_to(int pe, std::span<const std::byte> address) override;
    Status add_peer(int pe, std::span<const std::byte> address) override;
    Result<network::WireMemory> register_memory(void* base, std::uint64_t bytes) override;
    void deregister_memory(std::uint64_t number) override;
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) override;
    void release_key(std::uint64_t /*key*/) override {}

    Code write(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
               network::WireContext& context) override;
    Code read(const network::RemoteAddress& from, void* to, std::uint64_t bytes,
              network::WireContext& context) override;
    Code write_signal(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
                      const network::RemoteAddress& at, std::uint64_t signal, network::WireContext& context) override;
    Code send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) override;
    [[nodiscard]] bool has_unsent_messages() const override;
    [[nodiscard]] std::string last_error() const override { return last_error_; }
    void forget(int pe) override;
    void close(network::LaneId lane_id) override;

    bool progress(network::WireListener& listener) override;
    [[nodiscard]] int descriptor() const override { return poller_.fd(); }
    [[nodiscard]] int alarm() const override { return timer_ ? timer_->descriptor() : -1; }
    bool prepare_to_wait(network::WakeEvents what) override;

private:
    using Owned = std::unique_ptr<Connection>;
    struct PeerAddress {
        Address address;
        SipKey secret{};
    };
    struct Peer {
        std::optional<PeerAddress> address;
        std::vector<Connection*> lanes;  // that carry this PE's operations, by lane; null: not connected, or ended
        bool forgotten = false;
        Connection* opened = nullptr;  // by the peer: the last one of lane 0
        SipKey opened_by{};            // the secret that its opener has sent
    };
    struct Completion {
        network::WireContext* context;
        Code code;
        std::string why;
    };
    using Clock = std::chrono::steady_clock;
    // A connection of this PE's operations that has ended. What the peer sent on others may still have to be received,
    // its goodbye among it: until then, for a second at most, the end is not reported.
    struct Loss {
        network::LaneId lane_id;
        Connection::End end;
        std::vector<network::WireContext*> unfinished;
        std::uint64_t round;
        Clock::time_point deadline;
    };

    TcpWire(int my_pe, int npes, std::uint32_t lanes, std::chrono::microseconds max_gap);
    Status listen(const Address& where);
    [[nodiscard]] static Result<PeerAddress> decode(int pe, std::span<const std::byte> address);

    [[nodiscard]] Peer& peer(int pe) { return peers_[static_cast<std::size_t>(pe)]; }
    // The connection of the lane, opened if necessary. Null: sets `code`.
    Connection* outgoing(network::LaneId lane_id, Code& code);
    Code connect(network::LaneId lane_id);
    // Only lane 0 has one connection for both PEs. The failure of another lane must not end that of the peer.
    [[nodiscard]] bool is_shared(network::LaneId lane_id) const { return lane_id.lane == 0 && lane_id.pe != my_pe_; }
    // The connection that the peer has opened and both share; null: there is none. A process that knows the
    // secret of this PE may send operations to it. Those of this PE go only to the peer itself, which also knows its
    // own secret.
    [[nodiscard]] Connection* opened_by_peer(network::LaneId lane_id) const;
    // The connection that carries this PE's operations on the lane; null: there is none.
    [[nodiscard]] Connection* connection_of(network::LaneId lane_id) const;
    std::vector<Connection*> open_connections(int pe);  // -1: of all
    template <class PostFrame>
    Code post(network::LaneId lane_id, PostFrame&& post_frame);
    void update_interest(Connection& connection);
    bool accept_all();
    // True if there is room for one more connection without a handshake.
    bool has_room_for_unknown();
    bool serve(const Poller::Event& event);
    bool receive(Connection& connection);
    void send_batches();
    bool report(network::WireListener& listener);
    [[nodiscard]] bool can_report(const Loss& loss) const;
    [[nodiscard]] std::vector<Loss>::iterator next_loss();
    template <class Wanted>
    void drop_losses(const Wanted& wanted);

    // As ConnectionOwner.
    void handshake_received(Connection& connection, const Handshake& handshake) override;
    // Moves the connection where nobody finds it, and records the loss of one that carries operations of this PE.
    void ended(Connection& connection, const Socket& socket) override;
    void active(int pe) override { listener_->active(pe); }
    [[nodiscard]] std::uint64_t progress_calls() const override { return progress_calls_; }
    [[nodiscard]] std::chrono::microseconds max_gap() const override { return max_gap_; }
    void batch_begins(Connection& connection) override;
    void arrived(std::span<const std::byte> message) override { listener_->arrived(message); }
    void completed(network::WireContext& context, Code code, const std::string& why) override {
        completions_.push_back({&context, code, why});
    }
    [[nodiscard]] const network::RegionTable& regions() const override { return regions_; }

    int my_pe_;
    Socket listener_socket_;
    Address listening_at_;
    SipKey secret_{};
    Poller poller_;
    std::vector<Peer> peers_;
    std::vector<Owned> connections_;  // of both directions
    std::vector<Owned> ended_;        // destroyed at the end of progress: callers may still refer to them
    bool accepts_ = true;             // false: there was no descriptor or no room for a connection
    std::size_t unknown_ = 0;         // incoming connections without a handshake
    std::size_t max_unknown_;
    std::uint64_t progress_calls_ = 0;
    std::uint64_t round_ = 0;  // of the poller, in progress
    // Most often it receives next. Reading it at once takes less time than asking the poller first, which only some
    // calls of progress do: fewer while it is the only one that receives.
    Connection* last_receiver_ = nullptr;
    std::uint64_t calls_per_poll_ = 2;
    std::chrono::microseconds max_gap_;
    std::optional<WakeTimer> timer_;  // none without bursts
    Clock::time_point timer_at_;      // when it expires
    std::vector<Connection*> batching_;
    network::RegionTable regions_;
    std::vector<Completion> completions_;
    std::vector<Loss> losses_;
    std::unique_ptr<std::byte[]> scratch_;
    network::WireListener* listener_ = nullptr;  // during progress
    std::string last_error_;
};

}  // namespace npushmem::tcp
