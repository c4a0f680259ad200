// The buffers of messages in flight.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <vector>

#include "transports/libfabric/provider_choice.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::libfabric {

// A buffer for a message in flight, in either direction, or for the operands of an atomic operation.
struct MessageBuffer : network::WireContext {
    bool receives = false;
    bool busy = false;  // holds an operation of this lane
    network::LaneId lane_id;
    network::WireContext* atomic = nullptr;  // completes with this buffer; null: a message
    std::array<std::byte, max_message_bytes> bytes;
};

// All buffers of a wire. It tracks which sending buffers are free and which receiving buffers have to be posted.
class MessageBuffers {
public:
    MessageBuffers(std::size_t receives, std::size_t sends);

    // The sending buffer that take() takes next; null: all are in use.
    [[nodiscard]] MessageBuffer* next() const { return free_sends_.empty() ? nullptr : free_sends_.back(); }
    void take(network::LaneId lane_id, network::WireContext* atomic);
    void release(MessageBuffer& buffer);
    // Releases the sending buffers of a lane that is closed.
    void release_lane(std::uint32_t lane);

    // The receiving buffer could not be posted again: post_receives() posts it.
    void defer_receive(MessageBuffer& buffer) { unposted_receives_.push_back(&buffer); }
    // Calls a function, which returns true when it has posted the buffer, for each receiving buffer that is not posted.
    template <class Post>
    void post_receives(Post&& post) {
        std::erase_if(unposted_receives_, [&](MessageBuffer* buffer) { return post(*buffer); });
    }
    [[nodiscard]] bool all_posted() const { return unposted_receives_.empty(); }

private:
    std::deque<MessageBuffer> buffers_;
    std::vector<MessageBuffer*> free_sends_;
    std::vector<MessageBuffer*> unposted_receives_;  // at first all; later for lack of room
};

}  // namespace npushmem::libfabric
