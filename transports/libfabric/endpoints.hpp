// SPDX-License-Identifier: BSD-3-Clause
// The endpoints of this PE: one receiver, and one sender per lane, where lane 0 may send from the receiver; and the
// descriptor that their completions make readable.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <vector>

#include "core/base/poller.hpp"
#include "transports/libfabric/domain.hpp"
#include "transports/libfabric/provider_choice.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::libfabric {

// The buffers of messages in flight.

// A buffer for a message in flight, in either direction, or for the operands of an atomic operation.
struct MessageBuffer : network::WireContext {
    bool receives = false;
    bool busy = false;       // holds an operation of this lane
    bool abandoned = false;  // nobody waits for it
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
    // Nobody waits any more for what is in flight to this peer.
    void abandon(int pe);
    // True when a sending buffer is in use that is not abandoned.
    [[nodiscard]] bool has_sends() const {
        return std::ranges::any_of(buffers_, [](const MessageBuffer& each) { return each.busy && !each.abandoned; });
    }
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

// The completion queues that a thread can wait for.
class WaitSet {
public:
    Status open();
    // Nothing can be waited for: waiting threads poll then.
    void disable() { *this = WaitSet(); }
    [[nodiscard]] bool is_enabled() const { return poller_.fd() >= 0; }
    [[nodiscard]] int descriptor() const { return poller_.fd(); }

    Status watch(fid_cq& completions);
    // Closing a completion queue removes it from the descriptor.
    void remove(fid_cq& completions) { std::erase(watched_, &completions.fid); }
    // False: a completion queue has completions.
    [[nodiscard]] bool prepare_to_wait(fid_fabric* fabric);

private:
    Poller poller_;
    std::vector<fid*> watched_;
};

// Peers know the address of the receiver only. With Domain::shares_connections() it also sends for lane 0, so two PEs
// share one connection. Over TCP, the answer to a frame then acknowledges it. With a connection for each direction,
// each frame costs a segment that only acknowledges it, and an answered put of 8 bytes takes 1.35 times as long.
// Otherwise only senders open connections, so that each connection has one initiator.
//
// The first use of a lane other than lane 0 opens its sender and completion queue. Both are closed when the lane has no
// peer left; later completions of that lane are not reported.
class Endpoints {
public:
    explicit Endpoints(Domain& domain) : domain_(domain) {}

    Status open();
    [[nodiscard]] fid_ep& receiver() const { return *receiver_; }
    Result<Bytes> address() const;

    // The sender of a lane that exists or is opened now. Null on failure; sets failure().
    fid_ep* sender_for(network::LaneId lane_id);
    [[nodiscard]] const Status& failure() const { return failure_; }
    // The peer no longer uses the lane. True: this closed the lane.
    bool close(network::LaneId lane_id);

    // Calls a function for each open completion queue. The function may open lanes.
    template <class Function>
    void for_each_completion_queue(Function&& function) {
        function(*completions_);
        for (std::size_t i = 1; i < lanes_.size(); ++i)
            if (lanes_[i].sender) function(*lanes_[i].completions);
    }
    [[nodiscard]] int descriptor() const { return wait_set_.descriptor(); }
    [[nodiscard]] bool prepare_to_wait();

private:
    // A sender and its completion queue. Lane 0 uses the completion queue of the receiver. Closed in reverse order.
    struct Lane {
        Owned<fid_cq> completions;
        Owned<fid_ep> sender;
        std::vector<bool> peers;  // that use the lane; not recorded for lane 0
    };

    Status open_lane(Lane& lane);

    Domain& domain_;
    fi_wait_obj wait_ = FI_WAIT_FD;
    // Closed in reverse order.
    Owned<fid_cq> completions_;
    Owned<fid_ep> receiver_;
    std::vector<Lane> lanes_;  // without a sender: closed or unused; lane 0: the receiver sends
    WaitSet wait_set_;
    Status failure_;
};

}  // namespace npushmem::libfabric
