// SPDX-License-Identifier: BSD-3-Clause
#include "transports/ucx/worker.hpp"

#include <sys/eventfd.h>
#include <unistd.h>
#include <thread>
#include <utility>

#include "transports/ucx/ucx_context.hpp"

namespace npushmem::ucx {

using network::WireContext;

MessageBuffers::MessageBuffers(std::size_t count) : buffers_(count) {
    for (MessageBuffer& buffer : buffers_) {
        buffer.owner = WireContext::Owner::wire;
        free_.push_back(&buffer);
    }
}

Status EventQueue::open() {
    wakeup_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return wakeup_.valid() ? Status{} : system_failure("cannot create a descriptor to wait on");
}

void EventQueue::push(Event event) {
    events_.push_back(std::move(event));
    if (!std::exchange(armed_, false)) return;
    const std::uint64_t one = 1;
    (void)!::write(wakeup_.get(), &one, sizeof one);
}

bool EventQueue::clear_wakeup() {
    std::uint64_t rung = 0;
    (void)!::read(wakeup_.get(), &rung, sizeof rung);
    return events_.empty();
}

void EventQueue::on_done(void* request, ucs_status_t status, void* context) {
    auto* const posted = static_cast<WireContext*>(context);
    ucp_request_free(request);
    static_cast<EventQueue*>(posted->scratch[0])->push({posted, {}, {}, status});
}

ucs_status_t EventQueue::on_message(void* queue, const void* /*header*/, std::size_t /*header_bytes*/, void* data,
                                    std::size_t bytes, const ucp_am_recv_param_t* /*param*/) {
    const auto* const begin = static_cast<const std::byte*>(data);
    static_cast<EventQueue*>(queue)->push({nullptr, Bytes(begin, begin + bytes), {}, UCS_OK});
    return UCS_OK;
}

namespace {

constexpr std::chrono::seconds disconnect_timeout{10};

}  // namespace

Status Worker::open(ucp_context_h context) {
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    ucp_worker_h made = nullptr;
    const ucs_status_t done = ucp_worker_create(context, &params, &made);
    if (done != UCS_OK) return failure("ucp_worker_create", done);
    worker_.reset(made);
    return {};
}

Status Worker::connect(network::LaneId lane_id, const Bytes& address, EventQueue& events) {
    Endpoint& made = endpoints_[lane_id.pe];
    made.events = &events;
    made.lane_id = lane_id;
    ucp_ep_params_t params{};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {&on_lost, &made};
    const ucs_status_t done = ucp_ep_create(worker_.get(), &params, &made.handle);
    if (done == UCS_OK) return {};
    endpoints_.erase(lane_id.pe);
    return failure("ucp_ep_create", done);
}

void Worker::on_lost(void* endpoint, ucp_ep_h /*handle*/, ucs_status_t status) {
    auto* const lost = static_cast<Endpoint*>(endpoint);
    lost->lost = true;
    lost->events->push({nullptr, {}, lost->lane_id, status});
}

Result<ucp_rkey_h> Worker::unpack(std::uint64_t number, int pe, const Bytes& packed) {
    ucp_rkey_h made = nullptr;
    const ucs_status_t done = ucp_ep_rkey_unpack(endpoints_.at(pe).handle, packed.data(), &made);
    if (done != UCS_OK) return failure("ucp_ep_rkey_unpack", done);
    keys_[number].reset(made);
    return made;
}

bool Worker::drive(Worker& first) {
    const bool active = progress();
    return (this != &first && first.progress()) || active;
}

void Worker::flush(Worker& first, Time deadline) {
    for (const auto& [pe, endpoint] : endpoints_) flush(endpoint, first, deadline);
}

void Worker::flush(int pe, Worker& first, Time deadline) { flush(endpoints_.at(pe), first, deadline); }

void Worker::flush(const Endpoint& endpoint, Worker& first, Time deadline) {
    if (endpoint.handle == nullptr || endpoint.lost) return;
    const ucp_request_param_t plain{};
    const ucs_status_ptr_t flush = ucp_ep_flush_nbx(endpoint.handle, &plain);
    if (flush == nullptr || UCS_PTR_IS_ERR(flush)) return;
    MemoryFailures& failures = endpoint.events->memory_failures();
    const MemoryFailures::Counting counting(failures);
    while (ucp_request_check_status(flush) == UCS_INPROGRESS && !endpoint.lost && !failures.are_lasting() &&
           std::chrono::steady_clock::now() < deadline)
        if (!drive(first)) std::this_thread::yield();
    ucp_request_free(flush);
}

void Worker::close(const Endpoint& endpoint, Worker& first) {
    if (endpoint.handle == nullptr) return;
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t closing = ucp_ep_close_nbx(endpoint.handle, &how);
    if (closing == nullptr || UCS_PTR_IS_ERR(closing)) return;
    const auto deadline = std::chrono::steady_clock::now() + disconnect_timeout;
    while (ucp_request_check_status(closing) == UCS_INPROGRESS && std::chrono::steady_clock::now() < deadline)
        (void)drive(first);
    ucp_request_free(closing);  // UCX frees the request when it completes
}

void Worker::disconnect(int pe, Worker& first) {
    const auto found = endpoints_.find(pe);
    close(found->second, first);
    endpoints_.erase(found);
}

void Worker::close(Worker& first) {
    keys_.clear();
    for (const auto& [pe, endpoint] : endpoints_) close(endpoint, first);
    worker_.reset();
    endpoints_.clear();
}

}  // namespace npushmem::ucx
