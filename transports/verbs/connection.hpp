// SPDX-License-Identifier: BSD-3-Clause
// A connection to one peer: a reliable queue pair, and its requests in flight.
#pragma once

#include <bit>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "transports/network/wire.hpp"
#include "transports/verbs/opened_port.hpp"
#include "transports/verbs/ud_handshake.hpp"
#include "transports/verbs/work_request.hpp"

namespace npushmem::verbs {

// The attributes of the path to a peer's port, for address handles and queue pairs.
inline ibv_ah_attr address_handle_attributes(const PortAddress& peer, const OpenedPort& port) {
    ibv_ah_attr out{};
    out.dlid = peer.lid;
    out.sl = port.settings().service_level;
    out.port_num = port.number();
    // Within an InfiniBand subnet the LID is sufficient.
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

// The action when a request has completed.
struct CompletionAction {
    // context: complete a network::WireContext; word: pass on a fetched value.
    enum class Kind : std::uint8_t { nothing, context, word, transfer, message };
    Kind kind = Kind::nothing;
    void* what = nullptr;
};

// The purpose of a connection.
struct ConnectionRole {
    network::LaneId lane_id;
    bool inbound = false;      // it only receives what the peer sends over one of its lanes
    std::uint32_t number = 0;  // index within the wire, used in work request IDs
};

// A reliable queue pair of the device.
//
//     INIT ── connect(peer's message) ──> RTS      any ── stop() ──> ERR
class QueuePair {
public:
    // `port` outlives the queue pair.
    QueuePair(OpenedPort& port, std::uint32_t initial_psn)
        : port_(port), library_(port.library()), initial_psn_(initial_psn) {}
    // Creates it, for `depth` requests.
    Status open(ibv_srq* receives, std::uint32_t depth);
    // Connects to the queue pair that the peer's message names. Afterwards this PE receives from the peer.
    Status connect(const ConnectMessage& peer);
    // Completes the requests in flight with an error.
    void stop();

    [[nodiscard]] std::uint32_t number() const { return pair_->qp_num; }
    [[nodiscard]] std::uint32_t initial_psn() const { return initial_psn_; }
    [[nodiscard]] std::uint32_t inline_bytes() const { return inline_bytes_; }
    // Returns 0 or an error number; then `bad` is the first request that was not posted.
    int post(ibv_send_wr* first, ibv_send_wr** bad) { return library_.post_send(pair_.get(), first, bad); }

private:
    Status make(ibv_srq* receives, std::uint32_t depth);
    Status to_init();
    Status to_receive(const ConnectMessage& peer);
    Status to_send(const ConnectMessage& peer);

    OpenedPort& port_;
    VerbsLibrary& library_;
    std::uint32_t inline_bytes_ = 0;
    std::uint32_t initial_psn_;
    Owned<ibv_qp> pair_;
};

// The requests in flight of a queue pair, in the order of posting.
//
// Requests complete in order, so one completion covers all requests before it: in a burst, one request in many asks for
// a completion. If the last one of a burst did not, Connection::finish_burst posts a request of 0 bytes that does.
class SendQueue {
public:
    explicit SendQueue(std::uint32_t depth) : depth_(depth), ring_(std::bit_ceil(depth)) {}

    [[nodiscard]] std::uint32_t depth() const { return depth_; }
    // The number of requests that can be posted now.
    [[nodiscard]] std::uint32_t room() const { return depth_ - under_way() - 1; }  // 1: reserved for finish_burst
    [[nodiscard]] std::uint32_t under_way() const { return head_ - tail_; }
    // True when requests are in flight but none asks for a completion.
    [[nodiscard]] bool burst_is_open() const { return head_ != tail_ && signaled_ == 0; }

    // Numbers the requests of the chain, which is posted next, and sets their flags. The last one gets action `last`.
    // There must be room. `connection` becomes part of the requests' IDs.
    void record(WorkChain& chain, CompletionAction last, std::uint32_t connection) {
        const bool signal_last =
            signaled_ == 0 || under_way() < always_signaled || since_signaled_ + chain.size() >= max_unsignaled;
        for (std::uint32_t i = 0; i < chain.size(); ++i) {
            const bool is_last = i + 1 == chain.size();
            record_request(chain[i], is_last ? last : CompletionAction{}, is_last && signal_last, connection);
        }
    }
    // Forgets the newest requests, which the device has rejected.
    void roll_back(std::uint32_t count);
    // Retires the requests up to this sequence number: calls `done(posted, is_last)` for each, in order.
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

private:
    struct Entry {
        CompletionAction posted;
        bool signaled = false;  // asks for a completion
        bool atomic = false;
    };
    // In a burst, one request in this many asks for a completion. The first ones all ask, because a burst whose last
    // request did not ask costs an extra request.
    static constexpr std::uint32_t max_unsignaled = 32;
    static constexpr std::uint32_t always_signaled = 32;

    void record_request(ibv_send_wr& request, CompletionAction posted, bool signaled, std::uint32_t connection) {
        const bool atomic =
            request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
        // Without this flag a later write may arrive before an earlier atomic.
        if (atomics_ > 0 && !atomic) request.send_flags |= IBV_SEND_FENCE;
        if (signaled) request.send_flags |= IBV_SEND_SIGNALED;
        request.wr_id = WorkRequestId{WorkRequestId::Kind::post, connection, head_}.packed();
        ring_[head_ & (ring_.size() - 1)] = {posted, signaled, atomic};
        ++head_;
        if (atomic) ++atomics_;
        since_signaled_ = signaled ? 0 : since_signaled_ + 1;
        if (signaled) ++signaled_;
    }

    std::uint32_t depth_;
    std::vector<Entry> ring_;
    std::uint32_t head_ = 0;  // sequence number of the next request; wraps
    std::uint32_t tail_ = 0;  // sequence number of the oldest request in flight
    std::uint32_t signaled_ = 0;
    std::uint32_t since_signaled_ = 0;
    std::uint32_t atomics_ = 0;
};

struct Transfer;

// A connection to one peer: a queue pair and its requests in flight.
//
//     made ── connect(peer's message) ──> connected ── set_peer_ready() ──> ready      any ── fail() ──> failed
class Connection {
public:
    // `port` outlives the connection.
    static Result<std::unique_ptr<Connection>> make(OpenedPort& port, ibv_srq* receives, const ConnectionRole& role);

    Status connect(const ConnectMessage& peer);
    // The peer is ready to receive from this PE.
    void set_peer_ready() { ready_ = connected_; }
    [[nodiscard]] bool ready() const { return ready_; }
    [[nodiscard]] const Status& failure() const { return failure_; }
    void fail(Status why) {
        if (failure_.ok()) failure_ = std::move(why);
    }
    // True when ready, not failed, and without an unfinished transfer that goes first.
    [[nodiscard]] bool is_open() const { return ready_ && unfinished == nullptr && failure_.ok(); }

    [[nodiscard]] int pe() const { return role_.lane_id.pe; }
    [[nodiscard]] const ConnectionRole& role() const { return role_; }
    [[nodiscard]] QueuePair& pair() { return pair_; }
    [[nodiscard]] const QueuePair& pair() const { return pair_; }
    [[nodiscard]] SendQueue& requests() { return requests_; }
    [[nodiscard]] const SendQueue& requests() const { return requests_; }

    // Posts the chain; its last request gets action `last`. There must be room. On failure `failure()` says why, and
    // `last` is not executed.
    Code post(WorkChain& chain, CompletionAction last);
    Code finish_burst();

    struct ControlMessage {
        std::uint32_t kind;
        Bytes bytes;
    };
    std::deque<ControlMessage> control_queue;  // to be sent when there is room
    Transfer* unfinished = nullptr;            // a transfer that is posted in part, for lack of room
    bool needs_service = false;                // in the ServiceQueue
    bool retired = false;                      // no longer used

private:
    Connection(OpenedPort& port, const ConnectionRole& role);

    ConnectionRole role_;
    bool connected_ = false;
    bool ready_ = false;
    Status failure_;
    SendQueue requests_;
    QueuePair pair_;
};

}  // namespace npushmem::verbs
