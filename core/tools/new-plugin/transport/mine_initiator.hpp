// SPDX-License-Identifier: BSD-3-Clause
// The initiator's side: queues, and the connection over which this PE requests operations on the memory of one peer.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "mine_wire.hpp"

namespace mine_plugin {

// Counts the operations of one queue and stores their failures until `test` or `quiet` returns them. Any thread.
class Queue {
public:
    void post() { outstanding_.fetch_add(1, std::memory_order_relaxed); }  // published by the lock of the requester
    // Records the result of an operation; `complete` follows when its token is complete.
    void record(std::uint64_t token, Code code);
    // Release: pairs with is_quiet.
    void complete() { outstanding_.fetch_sub(1, std::memory_order_release); }
    // Acquire: pairs with `complete`: fetched values and failures are visible.
    [[nodiscard]] bool is_quiet() const { return outstanding_.load(std::memory_order_acquire) == 0; }
    // Returns the failure of this operation, once, or ok.
    Code take_failure(std::uint64_t token);
    // Returns the first failure and forgets all, or ok.
    Code take_failures();

private:
    struct Failure {
        std::uint64_t token;
        Code code;
    };
    std::atomic<std::uint64_t> outstanding_{0};
    std::atomic<bool> has_failures_{false};  // spares the data path the lock
    std::mutex mutex_;
    std::vector<Failure> failures_;
};

// One operation: `bytes` bytes in pieces, then perhaps one more message (an atomic, or the signal of a put_signal).
struct Operation {
    Header data;  // of a put or get of data.bytes bytes; 0 bytes: there are no pieces
    std::optional<Header> last;
    std::byte* local = nullptr;  // put: source; get: destination; null: the operation was dropped
    void* result = nullptr;      // of a fetching atomic
    std::shared_ptr<Queue> queue;

    // Progress. The requester alone uses these.
    std::uint64_t sent = 0;      // bytes put or requested
    std::uint64_t received = 0;  // bytes of gets
    std::uint64_t replies_due = 0;
    std::uint64_t token = 0;
    Code code = Code::ok;
};

// The connection to one peer. Requests are executed in the order of `post`, whatever their queues, and replies arrive
// in this order. So a fence needs no message, the completed operations are always the first ones, and a token is the
// number of an operation. Any thread.
class Requester {
public:
    struct Limits {
        std::uint64_t depth;  // operations in flight
        std::uint64_t piece;  // bytes of one message
    };
    Requester(int pe, std::unique_ptr<Connection> connection, Limits limits)
        : pe_(pe), limits_(limits), connection_(std::move(connection)) {}

    // Code::again: `depth` operations are in flight. Otherwise as the connection failed. token: for `test`;
    // 0 if nothing is left to wait for.
    Code post(Operation operation, std::uint64_t& token);
    // ok, again, or the failure of the operation; argument if the token was not returned by `post`.
    Code test(Queue& queue, std::uint64_t token) const;
    // Drops what is outstanding for this queue. Afterwards none of its local memory is accessed.
    void drop(const Queue& queue);

    // Sends what has room, then receives replies. For one thread at a time. `buffer` is scratch memory for one message.
    // ok: the connection is open, or `fail` was called; otherwise as Responder::progress.
    Code progress(std::span<std::byte> buffer);
    // Fails what is in flight, and every later post, with `code`; ends the connection. Not during `progress`.
    void fail(Code code);

    [[nodiscard]] int pe() const { return pe_; }
    void close() {
        if (connection_) connection_->close();
    }

private:
    void send_all();
    bool send_one(Operation& operation, bool& finished);
    bool handle(std::span<const std::byte> message);
    bool handle_data(Operation& front, const Header& reply, std::span<const std::byte> payload) const;
    void pop_completed();

    const int pe_;
    const Limits limits_;
    std::unique_ptr<Connection> connection_;  // null after `fail`
    std::mutex mutex_;
    std::deque<Operation> operations_;  // in flight
    std::size_t sent_ = 0;              // the first so many of them are sent
    bool waits_for_room_ = false;
    Code failure_ = Code::ok;
    std::atomic<std::uint64_t> posted_count_{0};
    std::atomic<std::uint64_t> sent_count_{0};
    std::atomic<std::uint64_t> completed_count_{0};
};

// A token names the peer, the operation's number among those to this peer, counted from 1, and the condition: complete
// when sent (the source may be reused) or when replied (the result is in place).
struct Token {
    std::uint64_t number;
    std::uint64_t pe;
    bool when_sent;

    static constexpr unsigned number_bits = 43;  // years of operations
    static constexpr unsigned pe_bits = 20;
    [[nodiscard]] constexpr std::uint64_t encode() const {
        return std::uint64_t{when_sent} << 63U | pe << number_bits | number;
    }
    static constexpr Token decode(std::uint64_t token) {
        return {token & ((std::uint64_t{1} << number_bits) - 1),
                token >> number_bits & ((std::uint64_t{1} << pe_bits) - 1), token >> 63U != 0};
    }
};

}  // namespace mine_plugin
