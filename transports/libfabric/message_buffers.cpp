#include "transports/libfabric/message_buffers.hpp"

namespace npushmem::libfabric {

MessageBuffers::MessageBuffers(std::size_t receives, std::size_t sends) : buffers_(receives + sends) {
    for (MessageBuffer& buffer : buffers_) {
        buffer.owner = network::WireContext::Owner::wire;
        buffer.receives = unposted_receives_.size() < receives;
        (buffer.receives ? unposted_receives_ : free_sends_).push_back(&buffer);
    }
}

void MessageBuffers::take(network::LaneId lane_id, network::WireContext* atomic) {
    MessageBuffer& buffer = *free_sends_.back();
    buffer.lane_id = lane_id;
    buffer.busy = true;
    buffer.atomic = atomic;
    free_sends_.pop_back();
}

void MessageBuffers::release(MessageBuffer& buffer) {
    buffer.busy = false;
    free_sends_.push_back(&buffer);
}

void MessageBuffers::release_lane(std::uint32_t lane) {
    for (MessageBuffer& buffer : buffers_)
        if (buffer.busy && buffer.lane_id.lane == lane) release(buffer);
}

}  // namespace npushmem::libfabric
