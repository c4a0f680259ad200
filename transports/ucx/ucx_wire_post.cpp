// The data path: posting and completions.
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "transports/ucx/ucx_api.hpp"
#include "transports/ucx/ucx_wire.hpp"

namespace npushmem::ucx {

using network::RemoteAddress;
using network::WireContext;

Code UcxWire::record_error(const Status& why) {
    last_error_ = why.message();
    code_ = why.code() == Code::again ? Code::system : why.code();
    return code_;
}

ucp_ep_h UcxWire::endpoint_for(network::LaneId lane_id) {
    if (lane_id.lane >= lanes_.size()) lanes_.resize(lane_id.lane + 1);
    Lane& lane = lanes_[lane_id.lane];
    if (const auto found = lane.peers.find(lane_id.pe); found != lane.peers.end()) [[likely]]
        return found->second.endpoint;
    Status s = lane.worker != nullptr ? Status{} : open_lane(lane);
    if (s.ok()) s = connect(lane, lane_id);
    if (s.ok()) return lane.peers.at(lane_id.pe).endpoint;
    (void)record_error(s);
    return nullptr;
}

ucp_rkey_h UcxWire::key_for(const RemoteAddress& place) {
    Lane& lane = lanes_[place.lane_id.lane];
    if (const auto found = lane.keys.find(place.key); found != lane.keys.end()) [[likely]]
        return found->second;
    ucp_rkey_h made = nullptr;
    const ucs_status_t done =
        ucp_ep_rkey_unpack(lane.peers.at(place.lane_id.pe).endpoint, keys_.at(place.key).packed.data(), &made);
    if (done == UCS_OK) return lane.keys.emplace(place.key, made).first->second;
    (void)record_error(failure("ucp_ep_rkey_unpack", done));
    return nullptr;
}

ucp_request_param_t UcxWire::parameters(WireContext& context) {
    context.scratch[0] = this;
    ucp_request_param_t out{};
    out.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    out.cb.send = &on_done;
    out.user_data = &context;
    return out;
}

Code UcxWire::outcome(ucs_status_ptr_t posted, WireContext& context, const char* what) {
    if (UCS_PTR_IS_ERR(posted)) {
        const ucs_status_t status = UCS_PTR_STATUS(posted);
        last_error_ = fmt::format("{}: {}", what, text_of(status));
        return code_of_status(status);
    }
    // Complete already, without a callback: progress reports it.
    if (posted == nullptr) queue_event({&context, {}, {}, UCS_OK});
    return Code::ok;
}

Code UcxWire::write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) {
    const ucp_ep_h endpoint = endpoint_for(to.lane_id);
    const ucp_rkey_h key = endpoint != nullptr ? key_for(to) : nullptr;
    if (key == nullptr) return code_;
    const ucp_request_param_t how = parameters(context);
    return outcome(ucp_put_nbx(endpoint, from, bytes, to.base + to.offset, key, &how), context, "ucp_put_nbx");
}

Code UcxWire::read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) {
    const ucp_ep_h endpoint = endpoint_for(from.lane_id);
    const ucp_rkey_h key = endpoint != nullptr ? key_for(from) : nullptr;
    if (key == nullptr) return code_;
    const ucp_request_param_t how = parameters(context);
    return outcome(ucp_get_nbx(endpoint, to, bytes, from.base + from.offset, key, &how), context, "ucp_get_nbx");
}

// The context holds the operand or compare value until the operation completes.
Code UcxWire::atomic(const RemoteAddress& at, const npushmem_atomic& op, WireContext& context) {
    const auto known = op.width == sizeof op.operand ? atomic_of(op.operation) : std::nullopt;
    if (!known) return Code::unsupported;
    const ucp_ep_h endpoint = endpoint_for(at.lane_id);
    const ucp_rkey_h key = endpoint != nullptr ? key_for(at) : nullptr;
    if (key == nullptr) return code_;
    ucp_request_param_t how = parameters(context);
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    how.datatype = ucp_dt_make_contig(sizeof op.operand);
    void* const number = &context.scratch[1];
    std::memcpy(number, &op.operand, sizeof op.operand);
    if (op.operation == NPUSHMEM_ATOMIC_FETCH) std::memset(number, 0, sizeof op.operand);
    if (known->reply != UcxAtomic::Reply::none) {
        how.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        how.reply_buffer = known->reply == UcxAtomic::Reply::wanted ? op.result : &context.scratch[2];
    }
    if (op.operation == NPUSHMEM_ATOMIC_COMPARE_SWAP) {  // the result buffer holds the new value, then the old one
        std::memcpy(number, &op.compare, sizeof op.compare);
        std::memcpy(op.result, &op.operand, sizeof op.operand);
    }
    return outcome(ucp_atomic_op_nbx(endpoint, known->operation, number, 1, at.base + at.offset, key, &how), context,
                   "ucp_atomic_op_nbx");
}

Code UcxWire::flush(network::LaneId lane_id, WireContext& context) {
    const ucp_ep_h endpoint = endpoint_for(lane_id);
    if (endpoint == nullptr) return code_;
    const ucp_request_param_t how = parameters(context);
    return outcome(ucp_ep_flush_nbx(endpoint, &how), context, "ucp_ep_flush_nbx");
}

Code UcxWire::send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    const std::size_t bytes = head.size() + rest.size();
    if (bytes > message_bytes) return Code::argument;
    if (free_sends_.empty()) return Code::again;
    const ucp_ep_h endpoint = endpoint_for(lane_id);
    if (endpoint == nullptr) return code_;
    Buffer& buffer = *free_sends_.back();
    std::memcpy(buffer.bytes.data(), head.data(), head.size());
    if (!rest.empty()) std::memcpy(buffer.bytes.data() + head.size(), rest.data(), rest.size());
    buffer.lane_id = lane_id;
    ucp_request_param_t how = parameters(buffer);
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_AM_SEND_FLAG_EAGER;  // a single protocol keeps the order of messages
    const ucs_status_ptr_t posted = ucp_am_send_nbx(endpoint, message_id, nullptr, 0, buffer.bytes.data(), bytes, &how);
    if (posted == nullptr) return Code::ok;  // the buffer is free again
    const Code sent = outcome(posted, buffer, "ucp_am_send_nbx");
    if (sent == Code::ok) free_sends_.pop_back();
    return sent;
}

void UcxWire::on_done(void* request, ucs_status_t status, void* context) {
    auto* const posted = static_cast<WireContext*>(context);
    ucp_request_free(request);
    static_cast<UcxWire*>(posted->scratch[0])->queue_event({posted, {}, {}, status});
}

void UcxWire::on_lost(void* peer, ucp_ep_h /*endpoint*/, ucs_status_t status) {
    auto* const lost = static_cast<Peer*>(peer);
    lost->lost = true;
    lost->wire->queue_event({nullptr, {}, lost->lane_id, status});
}

ucs_status_t UcxWire::on_message(void* wire, const void* /*header*/, std::size_t /*header_bytes*/, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* /*param*/) {
    const auto* const begin = static_cast<const std::byte*>(data);
    static_cast<UcxWire*>(wire)->queue_event({nullptr, Bytes(begin, begin + bytes), {}, UCS_OK});
    return UCS_OK;
}

void UcxWire::queue_event(Event event) {
    events_.push_back(std::move(event));
    if (!std::exchange(armed_, false)) return;
    const std::uint64_t one = 1;
    (void)!::write(event_fd_, &one, sizeof one);
}

void UcxWire::dispatch_event(network::WireListener& listener, Event& event) {
    const Code code = code_of_status(event.status);
    const std::string why = code == Code::ok ? std::string() : text_of(event.status);
    if (event.context == nullptr && event.lane_id.pe < 0) return listener.arrived(event.message);
    if (event.context == nullptr) return listener.lost(event.lane_id, code, why);
    if (event.context->owner == WireContext::Owner::transport)
        return listener.completed(*event.context, code == Code::again ? Code::system : code, why);
    auto& buffer = static_cast<Buffer&>(*event.context);
    free_sends_.push_back(&buffer);
    if (code != Code::ok) listener.lost(buffer.lane_id, code, why);
}

bool UcxWire::progress(network::WireListener& listener) {
    armed_ = false;
    bool active = false;
    for (const Lane& lane : lanes_)
        if (lane.worker != nullptr) active = ucp_worker_progress(lane.worker) != 0 || active;
    std::vector<Event> events;
    events.swap(events_);
    for (Event& event : events) dispatch_event(listener, event);
    active = active || !events.empty();
    return active;
}

bool UcxWire::prepare_to_wait(network::WakeEvents /*what*/) {
    std::uint64_t rung = 0;
    (void)!::read(event_fd_, &rung, sizeof rung);
    if (!events_.empty()) return false;
    for (const Lane& lane : lanes_)
        if (lane.worker != nullptr && ucp_worker_arm(lane.worker) != UCS_OK) return false;
    armed_ = true;
    return true;
}

}  // namespace npushmem::ucx
