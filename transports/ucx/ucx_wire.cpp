// SPDX-License-Identifier: BSD-3-Clause
#include "transports/ucx/ucx_wire.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "transports/ucx/ucx_context.hpp"

namespace npushmem::ucx {

using network::RemoteAddress;
using network::WireContext;

Result<std::unique_ptr<network::Wire>> UcxWire::open(const UcxOptions& options, int npes) {
    const std::string options_text =
        fmt::format("with NPUSHMEM_UCX_TLS='{}' and NPUSHMEM_UCX_NET_DEVICES='{}'; ucx_info -d lists the devices",
                    options.transports, options.devices);
    // UCX lists the devices first and opens them later. If one disappears meanwhile, a new list is without it.
    constexpr int attempts = 3;
    Status opened;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        std::unique_ptr<UcxWire> wire(new UcxWire(options_text));
        opened = wire->open_all(options, npes);
        if (opened.ok()) return std::unique_ptr<network::Wire>(std::move(wire));
        if (opened.code() != Code::unreachable) break;
    }
    return Status{opened.code(),
                  fmt::format("cannot open UCX {}: {} ({})", ucp_get_version_string(), opened.message(), options_text)};
}

Status UcxWire::open_all(const UcxOptions& options, int npes) {
    Status s = context_.open(options, npes);
    if (s.ok()) s = events_.open();
    if (s.ok()) s = workers_.open(context_.get());
    if (s.ok()) set_traits(options);
    return s;
}

void UcxWire::set_traits(const UcxOptions& options) {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    ucp_get_version(&major, &minor, &release);
    traits_.name = fmt::format("UCX {}.{}.{}", major, minor, release);
    if (!options.transports.empty()) traits_.name += " TLS=" + options.transports;
    if (!options.devices.empty()) traits_.name += " on " + options.devices;
    // The wire format is stable within a minor version.
    traits_.protocol = fmt::format("ucx {}.{}{}", major, minor, options.atomics ? ", native atomics" : "");
    if (options.atomics)
        for (int operation = 0; operation < NPUSHMEM_ATOMIC_COUNT; ++operation)
            if (atomic_of(operation)) traits_.atomic_64 |= 1U << operation;
    traits_.delivery = network::Delivery::on_flush;
    traits_.message_bytes = MessageBuffer::max_bytes;
    const NetworkType network_type = network_of(transports_of(info_of(context_.get())));
    // UCX does not report the bandwidth of RDMA networks before it has connected.
    if (network_type == NetworkType::rdma) traits_.latency_ns = network::rdma_latency_ns;
    if (network_type != NetworkType::tcp) return;
    traits_.arrives_in_progress = true;
    traits_.write_as_message_bytes = max_write_as_message;
    traits_.latency_ns = network::tcp_latency_ns;
    traits_.bytes_per_second = network::tcp_bytes_per_second;
}

Result<std::uint64_t> UcxWire::import_key(int pe, std::span<const std::byte> key) {
    auto imported = workers_.import_key(pe, key);
    if (!imported.ok()) (void)connection_failed();
    return imported;
}

UcxWire::Target UcxWire::target(const RemoteAddress& place) {
    const ucp_ep_h endpoint = workers_.endpoint_for(place.lane_id);
    return {endpoint, endpoint != nullptr ? workers_.key_for(place) : nullptr};
}

Code UcxWire::connection_failed() {
    last_error_ = workers_.failure().message();
    return workers_.failure().code();
}

ucp_request_param_t UcxWire::parameters(WireContext& context) {
    context.scratch[0] = &events_;
    ucp_request_param_t out{};
    out.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    out.cb.send = &EventQueue::on_done;
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
    if (posted == nullptr) events_.push({&context, {}, {}, UCS_OK});
    return Code::ok;
}

Code UcxWire::write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) {
    const auto [endpoint, key] = target(to);
    if (key == nullptr) return connection_failed();
    const ucp_request_param_t how = parameters(context);
    return outcome(ucp_put_nbx(endpoint, from, bytes, to.base + to.offset, key, &how), context, "ucp_put_nbx");
}

Code UcxWire::read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) {
    const auto [endpoint, key] = target(from);
    if (key == nullptr) return connection_failed();
    const ucp_request_param_t how = parameters(context);
    return outcome(ucp_get_nbx(endpoint, to, bytes, from.base + from.offset, key, &how), context, "ucp_get_nbx");
}

// The context holds the operand or compare value until the operation completes.
Code UcxWire::atomic(const RemoteAddress& at, const npushmem_atomic& op, WireContext& context) {
    const auto known = op.width == sizeof op.operand ? atomic_of(op.operation) : std::nullopt;
    if (!known) return Code::unsupported;
    const auto [endpoint, key] = target(at);
    if (key == nullptr) return connection_failed();
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
    const ucp_ep_h endpoint = workers_.endpoint_for(lane_id);
    if (endpoint == nullptr) return connection_failed();
    const ucp_request_param_t how = parameters(context);
    return outcome(ucp_ep_flush_nbx(endpoint, &how), context, "ucp_ep_flush_nbx");
}

Code UcxWire::send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    const std::size_t bytes = head.size() + rest.size();
    if (bytes > MessageBuffer::max_bytes) return Code::argument;
    if (buffers_.next() == nullptr) return Code::again;
    const ucp_ep_h endpoint = workers_.endpoint_for(lane_id);
    if (endpoint == nullptr) return connection_failed();
    MessageBuffer& buffer = *buffers_.next();
    std::memcpy(buffer.bytes.data(), head.data(), head.size());
    if (!rest.empty()) std::memcpy(buffer.bytes.data() + head.size(), rest.data(), rest.size());
    buffer.lane_id = lane_id;
    ucp_request_param_t how = parameters(buffer);
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_AM_SEND_FLAG_EAGER;  // a single protocol keeps the order of messages
    const ucs_status_ptr_t posted = ucp_am_send_nbx(endpoint, message_id, nullptr, 0, buffer.bytes.data(), bytes, &how);
    if (posted == nullptr) return Code::ok;  // the buffer is free again
    const Code sent = outcome(posted, buffer, "ucp_am_send_nbx");
    if (sent == Code::ok) buffers_.take();
    return sent;
}

void UcxWire::close(network::LaneId lane_id) {
    if (workers_.close(lane_id)) forget_events(lane_id);
}

// Drops the failures of messages that closing the lane has cancelled. Operations are still reported.
void UcxWire::forget_events(network::LaneId lane_id) {
    events_.remove_if([&](const Event& event) {
        if (event.context == nullptr) return event.lane_id == lane_id;  // a message that has arrived has no lane
        if (event.context->owner != WireContext::Owner::wire) return false;
        auto& buffer = static_cast<MessageBuffer&>(*event.context);
        if (buffer.lane_id != lane_id) return false;
        buffers_.release(buffer);
        return true;
    });
}

void UcxWire::dispatch_event(network::WireListener& listener, Event& event) {
    const Code code = code_of_status(event.status);
    const std::string why = code == Code::ok ? std::string() : text_of(event.status);
    if (event.context == nullptr && event.lane_id.pe < 0) return listener.arrived(event.message);
    if (event.context == nullptr) return listener.lost(event.lane_id, code, why);
    if (event.context->owner == WireContext::Owner::transport)
        return listener.completed(*event.context, code == Code::again ? Code::system : code, why);
    auto& buffer = static_cast<MessageBuffer&>(*event.context);
    buffers_.release(buffer);
    if (code != Code::ok) listener.lost(buffer.lane_id, code, why);
}

bool UcxWire::progress(network::WireListener& listener) {
    events_.set_armed(false);
    MemoryFailures& failures = events_.memory_failures();
    const MemoryFailures::Counting counting(failures);
    const bool active = workers_.progress();
    std::vector<Event> events = events_.take();
    for (Event& event : events) dispatch_event(listener, event);
    if (!events.empty()) failures.reset();
    if (failures.are_lasting()) lose_peers(listener);
    return active || !events.empty();
}

void UcxWire::lose_peers(network::WireListener& listener) {
    events_.memory_failures().reset();
    for (const int pe : workers_.peers())
        listener.lost({pe}, Code::memory, "UCX cannot allocate its buffers: raise the limit of memory");
}

bool UcxWire::prepare_to_wait(network::WakeEvents /*what*/) {
    if (!events_.clear_wakeup() || !workers_.arm()) return false;
    events_.set_armed(true);
    return true;
}

}  // namespace npushmem::ucx
