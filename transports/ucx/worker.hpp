// SPDX-License-Identifier: BSD-3-Clause
// A UCX worker: the endpoints of one lane, one per peer, and the peers' keys unpacked for them.
#pragma once

#include <ucp/api/ucp.h>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/poller.hpp"
#include "transports/network/wire.hpp"
#include "transports/ucx/memory_failures.hpp"

namespace npushmem::ucx {

// What UCX reports through callbacks, and the buffers of messages in flight.

// Identifies the transport's messages among UCX's active messages.
constexpr unsigned message_id = 1;

// A buffer for a message in flight.
struct MessageBuffer : network::WireContext {
    static constexpr std::size_t max_bytes = 4096;

    network::LaneId lane_id;
    std::array<std::byte, max_bytes> bytes;
};

class MessageBuffers {
public:
    explicit MessageBuffers(std::size_t count);

    // The buffer that take() takes next; null: all are in use.
    [[nodiscard]] MessageBuffer* next() const { return free_.empty() ? nullptr : free_.back(); }
    void take() { free_.pop_back(); }
    void release(MessageBuffer& buffer) { free_.push_back(&buffer); }

private:
    std::deque<MessageBuffer> buffers_;
    std::vector<MessageBuffer*> free_;
};

struct Event {
    network::WireContext* context = nullptr;  // completed; null: a message arrived, or without one the lane is lost
    Bytes message;
    network::LaneId lane_id;
    ucs_status_t status = UCS_OK;
};

// Records the events that UCX reports through callbacks. They are dispatched outside of UCX, because the listener may
// call the wire again. Its descriptor wakes a waiting thread for events that UCX's descriptor does not report.
class EventQueue {
public:
    Status open();
    [[nodiscard]] int descriptor() const { return wakeup_.get(); }

    void push(Event event);
    [[nodiscard]] std::vector<Event> take() { return std::exchange(events_, {}); }
    template <class Predicate>
    void remove_if(Predicate&& unwanted) {
        std::erase_if(events_, unwanted);
    }

    // Makes the descriptor unreadable. False: there are events.
    [[nodiscard]] bool clear_wakeup();
    // Armed: a thread may be waiting for the descriptor, and the next event wakes it.
    void set_armed(bool armed) { armed_ = armed; }

    [[nodiscard]] MemoryFailures& memory_failures() { return memory_failures_; }

    // UCX's callbacks; scratch[0] of a posted context and the argument of on_message are the queue.
    static void on_done(void* request, ucs_status_t status, void* context);
    static ucs_status_t on_message(void* queue, const void* header, std::size_t header_bytes, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t* param);

private:
    std::vector<Event> events_;
    MemoryFailures memory_failures_;
    bool armed_ = false;
    FileDescriptor wakeup_;  // an eventfd
};

struct DestroyWorker {
    void operator()(ucp_worker_h worker) const { ucp_worker_destroy(worker); }
};
struct DestroyKey {
    void operator()(ucp_rkey_h key) const { ucp_rkey_destroy(key); }
};

// A worker is closed before it is destroyed. Closing drives `first`, the worker of lane 0, as well: the peer's side of
// a connection waits for its answers.
class Worker {
public:
    using Time = std::chrono::steady_clock::time_point;

    Status open(ucp_context_h context);
    [[nodiscard]] bool is_open() const { return worker_ != nullptr; }
    [[nodiscard]] ucp_worker_h get() const { return worker_.get(); }

    // A failure of the connection is an event of `events`.
    Status connect(network::LaneId lane_id, const Bytes& address, EventQueue& events);
    [[nodiscard]] bool has_endpoints() const { return !endpoints_.empty(); }
    // Null: not connected.
    [[nodiscard]] ucp_ep_h endpoint(int pe) const {
        const auto found = endpoints_.find(pe);
        return found != endpoints_.end() ? found->second.handle : nullptr;
    }

    // Null: not unpacked.
    [[nodiscard]] ucp_rkey_h key(std::uint64_t number) const {
        const auto found = keys_.find(number);
        return found != keys_.end() ? found->second.get() : nullptr;
    }
    // Unpacks a key of a connected peer.
    Result<ucp_rkey_h> unpack(std::uint64_t number, int pe, const Bytes& packed);
    void release_key(std::uint64_t number) { keys_.erase(number); }

    // True when it made progress.
    [[nodiscard]] bool progress() { return ucp_worker_progress(worker_.get()) != 0; }

    // Waits, up to the deadline, until the operations of all peers, or of one, are complete.
    void flush(Worker& first, Time deadline);
    void flush(int pe, Worker& first, Time deadline);
    // Drops the operations in flight: their callers have finished waiting. Release the keys of the peer before.
    void disconnect(int pe, Worker& first);
    void close(Worker& first);

private:
    struct Endpoint {
        EventQueue* events = nullptr;
        network::LaneId lane_id;
        ucp_ep_h handle = nullptr;
        bool lost = false;
    };

    static void on_lost(void* endpoint, ucp_ep_h handle, ucs_status_t status);
    void flush(const Endpoint& endpoint, Worker& first, Time deadline);
    void close(const Endpoint& endpoint, Worker& first);
    bool drive(Worker& first);

    std::unique_ptr<std::remove_pointer_t<ucp_worker_h>, DestroyWorker> worker_;
    std::unordered_map<int, Endpoint> endpoints_;  // at stable addresses: UCX holds pointers to them
    std::unordered_map<std::uint64_t, std::unique_ptr<std::remove_pointer_t<ucp_rkey_h>, DestroyKey>> keys_;
};

}  // namespace npushmem::ucx
