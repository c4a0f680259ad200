// The way to a peer's port, as address handles and queue pairs want it.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "transports/network/wire.hpp"
#include "transports/verbs/connect_message.hpp"
#include "transports/verbs/opened_port.hpp"
#include "transports/verbs/work_request.hpp"

namespace npushmem::verbs {

inline ibv_ah_attr address_handle_attributes(const PortAddress& peer, const OpenedPort& port) {
    ibv_ah_attr out{};
    out.dlid = peer.lid;
    out.sl = port.settings().service_level;
    out.port_num = port.number();
    // Within a subnet of InfiniBand the local identifier is enough.
    constexpr std::size_t prefix_bytes = 8;
    const bool same_subnet = std::memcmp(peer.gid.data(), port.gid().gid.raw, prefix_bytes) == 0;
    out.is_global = port.ethernet() || !same_subnet ? 1 : 0;
    if (out.is_global == 0) return out;
    std::memcpy(out.grh.dgid.raw, peer.gid.data(), peer.gid.size());
    out.grh.sgid_index = static_cast<std::uint8_t>(port.gid().gid_index);
    constexpr std::uint8_t hops = 255;
    out.grh.hop_limit = hops;
    out.grh.traffic_class = port.settings().traffic_class;
    return out;
}

// A reliable queue pair to one peer, and what is under way on it.
//
//     made ── connect(peer's message) ──> connected ── set_peer_ready() ──> ready      any ── fail() ──> failed
//
// What is posted completes in order, so that one completion tells of everything before it: of a burst, one request in
// many asks for a completion. The last of a burst may not have asked; `finish_burst` then posts a request of no bytes
// that does.

// What is to be done when a request has completed.
struct CompletionAction {
    // context: a network::WireContext to be told; word: where a fetched value is.
    enum class Kind : std::uint8_t { nothing, context, word, transfer, message };
    Kind kind = Kind::nothing;
    void* what = nullptr;
};

// What a connection is for.
struct ConnectionRole {
    network::LaneId lane_id;
    bool inbound = false;      // it only takes what the peer sends over a lane of its own
    std::uint32_t number = 0;  // of the wire's, in its work requests
};

class Connection {
public:
    // `port` and what it is made of outlive the connection.
    static Result<std::unique_ptr<Connection>> make(OpenedPort& port, ibv_srq* receives, const ConnectionRole& role);

    // The peer's queue pair is named by its message. Afterwards what the peer sends is taken.
    Status connect(const ConnectMessage& peer);
    [[nodiscard]] bool connected() const { return connected_; }
    // The peer takes what this PE sends.
    void set_peer_ready() { ready_ = connected_; }
    [[nodiscard]] bool ready() const { return ready_; }
    [[nodiscard]] const Status& failure() const { return failure_; }
    void fail(Status why) {
        if (failure_.ok()) failure_ = std::move(why);
    }
    // Ready, not failed, and nothing goes before what is posted now.
    [[nodiscard]] bool is_open() const { return ready_ && unfinished == nullptr && failure_.ok(); }
    // What is under way completes, with an error.
    void stop();

    [[nodiscard]] int pe() const { return role_.lane_id.pe; }
    [[nodiscard]] const ConnectionRole& role() const { return role_; }
    [[nodiscard]] std::uint32_t number() const { return pair_->qp_num; }
    [[nodiscard]] std::uint32_t initial_psn() const { return initial_psn_; }
    [[nodiscard]] std::uint32_t inline_bytes() const { return inline_bytes_; }
    // Requests that can be posted now.
    [[nodiscard]] std::uint32_t room() const { return depth_ - under_way() - 1; }  // 1: finish_burst's
    [[nodiscard]] std::uint32_t under_way() const { return head_ - tail_; }
    [[nodiscard]] std::uint32_t depth() const { return depth_; }

    // Posts all of them, of which the last is `last`; there is room. Otherwise `failure()` says why, and `last` will
    // not be told of.
    Code post(WorkChain& chain, CompletionAction last);
    // Is something under way that no completion will tell of?
    [[nodiscard]] bool burst_is_open() const { return head_ != tail_ && signaled_ == 0; }
    Code finish_burst();
    // The request with this sequence number, and all before it, have completed: calls `done(posted, is_last)`, in
    // order.
    template <class Done>
    void retire(std::uint32_t sequence, Done&& done) {
        while (static_cast<std::int32_t>(sequence - tail_) >= 0 && head_ != tail_) {
            const Entry entry = ring_[tail_ & (ring_.size() - 1)];
            const bool is_last = tail_ == sequence;
            ++tail_;
            if (entry.signaled) --signaled_;
            if (entry.atomic) --atomics_;
            done(entry.posted, is_last);
        }
    }

    // For whoever drives the connection: see VerbsWire.
    struct ControlMessage {
        std::uint32_t kind;
        Bytes bytes;
    };
    std::deque<ControlMessage> control_queue;  // to be sent as soon as there is room
    void* unfinished = nullptr;                // a transfer of which only a part has found room
    bool needs_service = false;                // in the list of those that something is to be done for
    bool retired = false;                      // nobody uses it any more

private:
    struct Entry {
        CompletionAction posted;
        bool signaled = false;  // for a completion
        bool atomic = false;
    };

    Connection(OpenedPort& port, const ConnectionRole& role);
    Status make_pair(ibv_srq* receives);
    Status to_init();
    Status to_receive(const ConnectMessage& peer);
    Status to_send(const ConnectMessage& peer);
    void record_request(ibv_send_wr& request, CompletionAction posted, bool signaled);
    void roll_back(std::uint32_t count);

    OpenedPort& port_;
    ConnectionRole role_;
    std::uint32_t depth_;
    std::uint32_t inline_bytes_ = 0;
    std::uint32_t initial_psn_;
    bool connected_ = false;
    bool ready_ = false;
    Status failure_;
    std::vector<Entry> ring_;
    std::uint32_t head_ = 0;  // sequence number of the next request; wraps
    std::uint32_t tail_ = 0;  // of the oldest under way
    std::uint32_t signaled_ = 0;
    std::uint32_t since_signaled_ = 0;
    std::uint32_t atomics_ = 0;
    Owned<ibv_qp> pair_;
};

}  // namespace npushmem::verbs
