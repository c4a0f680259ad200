// What UCX reports through callbacks, and the buffers of messages in flight.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/file_descriptor.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::ucx {

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

    // UCX's callbacks; scratch[0] of a posted context and the argument of on_message are the queue.
    static void on_done(void* request, ucs_status_t status, void* context);
    static ucs_status_t on_message(void* queue, const void* header, std::size_t header_bytes, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t* param);

private:
    std::vector<Event> events_;
    bool armed_ = false;
    FileDescriptor wakeup_;  // an eventfd
};

}  // namespace npushmem::ucx
