// SPDX-License-Identifier: BSD-3-Clause
#include "transports/libfabric/endpoints.hpp"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <algorithm>

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
    buffer.abandoned = false;
    buffer.atomic = atomic;
    free_sends_.pop_back();
}

void MessageBuffers::release(MessageBuffer& buffer) {
    buffer.busy = false;
    free_sends_.push_back(&buffer);
}

void MessageBuffers::abandon(int pe) {
    for (MessageBuffer& buffer : buffers_) buffer.abandoned = buffer.abandoned || buffer.lane_id.pe == pe;
}

void MessageBuffers::release_lane(std::uint32_t lane) {
    for (MessageBuffer& buffer : buffers_)
        if (buffer.busy && buffer.lane_id.lane == lane) release(buffer);
}

Status WaitSet::open() {
    auto opened = Poller::open();
    if (!opened.ok()) return opened.status();
    poller_ = std::move(opened).value();
    return {};
}

Status WaitSet::watch(fid_cq& completions) {
    int events = -1;
    Status s = check("fi_control", [&] { return fi_control(&completions.fid, FI_GETWAIT, &events); });
    if (s.ok()) s = poller_.watch(events, 0);
    if (s.ok()) watched_.push_back(&completions.fid);
    return s;
}

bool WaitSet::prepare_to_wait(fid_fabric* fabric) {
    if (!is_enabled()) return true;
    return fi_trywait(fabric, watched_.data(), static_cast<int>(watched_.size())) == 0;
}

Status Endpoints::open() {
    Status s = domain_.open_completions(completions_, wait_);
    if (!s.ok()) {
        wait_ = FI_WAIT_NONE;  // waiting threads poll then
        s = domain_.open_completions(completions_, wait_);
    }
    lanes_.resize(1);
    if (s.ok()) s = domain_.open_endpoint(receiver_, *completions_);
    if (s.ok() && !domain_.shares_connections()) s = domain_.open_endpoint(lanes_[0].sender, *completions_);
    if (!s.ok() || wait_ != FI_WAIT_FD) return s;
    Status waits = wait_set_.open();
    if (waits.ok()) waits = wait_set_.watch(*completions_);
    if (!waits.ok()) wait_set_.disable();
    return s;
}

Result<Bytes> Endpoints::address() const {
    std::size_t bytes = NPUSHMEM_ADDRESS_MAX;
    Bytes out(bytes);
    Status got = check("fi_getname", [&] { return fi_getname(&receiver_->fid, out.data(), &bytes); });
    if (!got.ok()) return got;
    out.resize(bytes);
    return out;
}

Status Endpoints::open_lane(Lane& lane) {
    Lane made;
    Status s = domain_.open_completions(made.completions, wait_);
    if (s.ok()) s = domain_.open_endpoint(made.sender, *made.completions);
    if (s.ok() && wait_set_.is_enabled()) s = wait_set_.watch(*made.completions);
    if (!s.ok()) return s;
    made.peers.resize(static_cast<std::size_t>(domain_.npes()));
    lane = std::move(made);
    return {};
}

fid_ep* Endpoints::sender_for(network::LaneId lane_id) {
    if (lane_id.lane == 0) return lanes_[0].sender ? lanes_[0].sender.get() : receiver_.get();
    if (lane_id.lane >= lanes_.size()) lanes_.resize(lane_id.lane + 1);
    Lane& lane = lanes_[lane_id.lane];
    if (!lane.sender) {
        if (const Status s = open_lane(lane); !s.ok()) {
            failure_ = {s.code() == Code::again ? Code::system : s.code(),
                        fmt::format("cannot open an endpoint for a context (NPUSHMEM_LIBFABRIC_LANES reduces their "
                                    "number): {}",
                                    s.message())};
            return nullptr;
        }
    }
    lane.peers[static_cast<std::size_t>(lane_id.pe)] = true;
    return lane.sender.get();
}

bool Endpoints::close(network::LaneId lane_id) {
    if (lane_id.lane >= lanes_.size() || !lanes_[lane_id.lane].sender) return false;
    Lane& lane = lanes_[lane_id.lane];
    lane.peers[static_cast<std::size_t>(lane_id.pe)] = false;
    if (std::find(lane.peers.begin(), lane.peers.end(), true) != lane.peers.end()) return false;
    wait_set_.remove(*lane.completions);
    lane.sender.reset();  // before the objects to which it is bound
    lane.completions.reset();
    return true;
}

bool Endpoints::prepare_to_wait() { return wait_set_.prepare_to_wait(domain_.fabric()); }

}  // namespace npushmem::libfabric
