#include "transports/ucx/event_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "transports/ucx/ucx_api.hpp"

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

}  // namespace npushmem::ucx
