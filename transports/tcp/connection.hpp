// SPDX-License-Identifier: BSD-3-Clause
// One TCP connection to or from a peer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/socket.hpp"
#include "transports/network/target_handler.hpp"
#include "transports/network/wire.hpp"
#include "transports/tcp/frame.hpp"
#include "transports/tcp/send_queue.hpp"

namespace npushmem::tcp {

class Connection;

// What a connection needs of its PE. The calls may close connections, also the one that calls.
class ConnectionOwner {
public:
    virtual ~ConnectionOwner() = default;
    // An incoming connection has received its handshake. The owner welcomes it, leaves it without an answer, or closes
    // that of a foreign process.
    virtual void handshake_received(Connection& connection, const Handshake& handshake) = 0;
    // The connection has ended; its socket is closed next.
    virtual void ended(Connection& connection, const Socket& socket) = 0;
    virtual void arrived(std::span<const std::byte> message) = 0;
    virtual void active(int pe) = 0;
    // Returns how often the owner has made progress.
    [[nodiscard]] virtual std::uint64_t progress_calls() const = 0;
    // The frames of a burst follow each other within this time; 0: there are no bursts.
    [[nodiscard]] virtual std::chrono::microseconds max_gap() const = 0;
    // The connection begins a batch. The owner calls send_batch() soon, whatever the PE does.
    virtual void batch_begins(Connection& connection) = 0;
    // An operation of this PE has ended.
    virtual void completed(network::WireContext& context, Code code, const std::string& why) = 0;
    [[nodiscard]] virtual const network::RegionTable& regions() const = 0;
};

// Sends and receives frames. The PE that has opened a connection sends its handshake, and operations as soon as the
// peer has welcomed it. Both PEs may send operations then, and answer those of the other. Where both do, the data of
// one direction acknowledge those of the other: a segment for each acknowledgement alone takes as long as a small
// message.
//
// In a burst of short frames, all but the first few form batches: the kernel takes as long for each call as for tens of
// frames. A batch leaves with the next frame after max_batch_age, when it is full, or when its owner sends it.
//
// One thread. An ended connection has no socket; its owner destroys it later.
class Connection {
public:
    enum class Direction { outgoing, incoming };

    Connection(ConnectionOwner& owner, Direction direction, Socket socket, network::LaneId lane_id)
        : owner_(owner), direction_(direction), lane_id_(lane_id), socket_(std::move(socket)) {}

    [[nodiscard]] Direction direction() const { return direction_; }
    // Of an incoming connection: the peer that has opened it; pe is -1 before its handshake.
    [[nodiscard]] network::LaneId lane_id() const { return lane_id_; }
    void set_lane_id(network::LaneId lane_id) { lane_id_ = lane_id; }
    [[nodiscard]] const Socket& socket() const { return socket_; }
    [[nodiscard]] bool is_open() const { return socket_.valid(); }
    [[nodiscard]] bool is_welcomed() const { return is_open() && queue_.is_open(); }
    // This PE may send operations.
    [[nodiscard]] bool is_usable() const { return is_welcomed() && !refused_ && !sending_failed_; }
    [[nodiscard]] bool has_unsent_operations() const {
        return is_open() && queue_.has_operations() && !sending_failed_;
    }
    [[nodiscard]] bool must_write() const {
        return is_open() && (!handshake_.empty() || (queue_.is_open() && queue_.must_write() && !sending_failed_));
    }
    [[nodiscard]] bool has_room() const { return queue_.has_room() && reads_.size() < max_reads && !sending_failed_; }
    [[nodiscard]] std::chrono::steady_clock::time_point begin() const { return begin_; }
    // The events of the socket that it waits for, as for epoll. A peer with more answers under way than it may have
    // reads is not served.
    [[nodiscard]] std::uint32_t events() const;
    // True if events() has changed since the last call.
    bool take_change_of_events() {
        const std::uint32_t wanted = events();
        return std::exchange(last_events_, wanted) != wanted;
    }

    // How the connection has ended. Only the first end counts.
    struct End {
        Code code = Code::ok;
        std::string why;
        bool by_peer = false;  // it has closed or reset the connection
        bool normal = false;   // the peer has closed its transport
    };
    [[nodiscard]] const End& end() const { return end_; }
    // The operations that were under way when the connection ended.
    std::vector<network::WireContext*> take_unfinished();

    // Of an outgoing connection: sent when the socket has connected.
    void set_handshake(const Handshake& handshake);
    // Of an incoming connection with a handshake: lets both sides send operations.
    void welcome();
    // Takes over the operations of a connection that the peer has not welcomed.
    void take_operations(Connection& other);

    // These return false when the connection has ended.
    bool send_message(std::span<const std::byte> head, std::span<const std::byte> rest);
    // `copied`: a write that cannot be sent at once is copied.
    bool write(const FrameHeader& header, const FrameSignal* signal, std::span<const std::byte> data, bool copied,
               network::WireContext& context);
    bool read(const FrameHeader& header, void* to, network::WireContext& context);
    void send_goodbye();
    void send_batch();
    // Returns whether there is a batch that began before then.
    [[nodiscard]] bool has_batch_before(std::chrono::steady_clock::time_point then) const {
        return queue_.has_batch() && batch_begin_ < then;
    }

    // The socket may have become writable. True: it has connected, failed, or taken frames.
    bool flush();
    // Handles what has arrived, up to a limit, with the scratch memory. True: something has.
    bool receive(std::span<std::byte> scratch);
    // The region is no longer registered: its memory is not accessed afterwards.
    void leave_region(std::uint64_t region);
    // What was sent still reaches the peer, unless it goes on sending much.
    void close(End end);

private:
    static constexpr std::size_t max_reads = 1024;
    // Payloads up to this size are not handled before they are complete: aligned words are never torn.
    static constexpr std::size_t max_whole = 64;
    // The first frames of a burst are sent at once: a caller that waits for an answer sends no more. A call of progress
    // ends a burst.
    static constexpr int frames_before_batch = 3;
    static constexpr std::size_t max_batched = 1024;  // payload; longer ones take more time to copy than the call
    static constexpr std::chrono::microseconds max_batch_age{20};

    struct Read {
        std::byte* to;
        std::uint64_t bytes;
        network::WireContext* context;
    };
    // The payload that is arriving.
    struct Arriving {
        std::byte* place = nullptr;
        std::uint64_t left = 0;
        std::uint64_t region = 0;  // of a write
        bool of_read = false;
        std::optional<FrameSignal> signal;
    };

    bool post(std::span<const std::byte> head, const Payload& payload);
    // Returns whether a frame that is posted now belongs into a batch.
    bool goes_into_batch(std::span<const std::byte> head, const Payload& payload);
    void report_sent();
    // After a refusal nothing is sent any more: if both PEs have refused a write, each finds the end of the other.
    void finish_refusal();
    [[nodiscard]] std::size_t bytes_needed(std::span<const std::byte> beginning) const;
    // Handles all frames of these bytes, and keeps an incomplete one.
    void consume(std::span<const std::byte> bytes);
    void consume_payload(std::span<const std::byte>& bytes);
    void advance(std::uint64_t bytes);
    void begin_payload(std::span<const std::byte> data);
    void handle(std::span<const std::byte> frame);
    void handle_write(const FrameHeader& header, std::span<const std::byte> rest);
    void handle_read(const FrameHeader& header);
    void handle_data(const FrameHeader& header, std::span<const std::byte> data);
    void finish_arriving();
    void refuse(std::uint64_t bytes, std::uint64_t offset);
    void fail(Code code, std::string why, bool by_peer = false) { close({code, std::move(why), by_peer, false}); }
    void fail_with(int error);
    // What the peer sent before it ended is still received.
    void fail_sending(int error);
    [[nodiscard]] bool accepts_frames() const { return queue_.answers() <= max_reads || sending_failed_; }
    // False: the socket has not connected, or has failed.
    bool send_handshake();

    ConnectionOwner& owner_;
    Direction direction_;
    network::LaneId lane_id_;
    Socket socket_;
    Bytes handshake_;             // of an outgoing connection: not sent yet
    SendQueue queue_;             // open: welcomed
    bool has_handshake_ = false;  // of an incoming connection
    bool has_operated_ = false;   // this PE has sent operations
    bool sending_failed_ = false;
    bool refused_ = false;  // a write: all later frames are dropped, until the peer closes the connection
    std::uint32_t last_events_ = 0;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::uint64_t last_progress_ = 0;  // of the owner, before the last frame
    int burst_ = 0;                    // its frames until now
    std::chrono::steady_clock::time_point last_posted_;
    std::chrono::steady_clock::time_point batch_begin_;
    std::deque<Read> reads_;  // in the order in which they are answered
    Bytes partial_;           // the beginning of a frame
    Arriving arriving_;
    End end_;
    std::vector<network::WireContext*> unfinished_;
};

}  // namespace npushmem::tcp
