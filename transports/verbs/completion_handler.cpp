// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/completion_handler.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "transports/verbs/verbs_library.hpp"
#include "transports/verbs/work_request.hpp"

namespace npushmem::verbs {

bool CompletionHandler::poll(network::WireListener& listener) {
    bool before = false;
    if (!polled_.empty()) {
        for (const auto& completion : std::exchange(polled_, {})) completed(listener, completion);
        before = true;
    }
    ConnectionTable& connections = targets_.connections;
    const std::size_t stopped = connections.retired();  // retired before this poll: nothing more completes on them
    std::array<ibv_wc, polled_at_once> found;
    const int count = port_.completions().poll(found);
    for (int i = 0; i < count; ++i) completed(listener, found[static_cast<std::size_t>(i)]);
    if (count < 0) connections.lose_all(listener, {Code::system, fmt::format("ibv_poll_cq failed ({})", count)});
    if (stopped > 0 && count < static_cast<int>(polled_at_once))
        for (const std::uint32_t number : connections.destroy_retired(stopped)) targets_.events.forget(number);
    if (targets_.receives.has_unposted()) targets_.receives.post_remaining();
    return count > 0 || before;
}

int CompletionHandler::poll_ahead() {
    polled_.resize(polled_at_once);
    const int count = port_.completions().poll(polled_);
    polled_.resize(static_cast<std::size_t>(std::max(count, 0)));
    return count;
}

void CompletionHandler::completed(network::WireListener& listener, const ibv_wc& completion) {
    switch (WorkRequestId::of(completion.wr_id).kind) {
        case WorkRequestId::Kind::post: return posted_completed(listener, completion);
        case WorkRequestId::Kind::receive: return received(listener, completion);
        case WorkRequestId::Kind::handshake_send: return targets_.manager.sent(completion);
        case WorkRequestId::Kind::handshake_receive: return targets_.manager.received(listener, completion);
    }
}

void CompletionHandler::fail(Connection& connection, const ibv_wc& completion) const {
    if (!connection.failure().ok()) return;
    const std::string text =
        fmt::format("work request {}: {} (status {}, vendor {:#x}); {}{}", WorkRequestId::of(completion.wr_id).which,
                    port_.library().wc_status_str(completion.status), static_cast<int>(completion.status),
                    completion.vendor_err, hint_for(completion.status), targets_.events.port_change_hints());
    // Stopping a lane does not lose the peer.
    const bool stopped = completion.status == IBV_WC_WR_FLUSH_ERR && connection.role().lane_id.lane > 0;
    connection.fail({stopped ? Code::system : code_of(completion.status), text});
}

void CompletionHandler::posted_completed(network::WireListener& listener, const ibv_wc& completion) {
    const WorkRequestId number = WorkRequestId::of(completion.wr_id);
    Connection& connection = targets_.connections.at(number.connection);
    // The waiting caller got the failure and owns its memory again, even if this request succeeded.
    const bool given_up = !connection.failure().ok();
    const bool failed = completion.status != IBV_WC_SUCCESS;
    if (failed) fail(connection, completion);
    std::uint32_t retired = 0;
    connection.requests().retire(number.which, [&](const CompletionAction& posted, bool is_last) {
        ++retired;
        finish(listener, posted, given_up || (failed && is_last) ? connection.failure() : ok_status_);
    });
    targets_.poster.completed(retired);
    if (failed) return targets_.connections.lose(listener, connection, connection.failure());
    if (connection.requests().burst_is_open() && targets_.poster.finish_burst(connection) != Code::ok)
        targets_.connections.lose(listener, connection, connection.failure());
}

void CompletionHandler::finish(network::WireListener& listener, const CompletionAction& posted, const Status& done) {
    switch (posted.kind) {
        case CompletionAction::Kind::nothing: return;
        case CompletionAction::Kind::context:
            return listener.completed(*static_cast<network::WireContext*>(posted.what), done.code(), done.message());
        case CompletionAction::Kind::word:
            return targets_.atomics.completed(listener, static_cast<std::byte*>(posted.what), done);
        case CompletionAction::Kind::transfer:
            return targets_.transfers.completed(listener, *static_cast<Transfer*>(posted.what), done);
        case CompletionAction::Kind::message: return targets_.messages.release(static_cast<std::byte*>(posted.what));
    }
}

void CompletionHandler::received(network::WireListener& listener, const ibv_wc& completion) {
    const std::size_t index = WorkRequestId::of(completion.wr_id).which;
    if (completion.status == IBV_WC_SUCCESS) {
        Connection* const from = targets_.connections.find(completion.qp_num);
        const auto message = targets_.receives.message(index, completion.byte_len);
        if (from != nullptr) from->set_peer_ready();  // a sending peer is also ready to receive
        if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0)
            listener.arrived(message);
        else if (from != nullptr)
            targets_.keys.handle(*from, ntohl(completion.imm_data), message);
    }
    targets_.receives.post_again(index);
}

bool PortEvents::handle(network::WireListener& listener, ConnectionTable& connections) {
    drain();
    until_check_ = polls_per_check;
    const auto events = std::exchange(events_, {});
    for (const Event& each : events) handle_event(listener, connections, each);
    return !events.empty();
}

void PortEvents::drain() {
    ibv_async_event event{};
    while (port_.library().take_async_event(port_.context(), &event) == 0) {
        const bool of_a_pair = event.event_type == IBV_EVENT_QP_FATAL || event.event_type == IBV_EVENT_QP_REQ_ERR ||
                               event.event_type == IBV_EVENT_QP_ACCESS_ERR;
        events_.push_back({event.event_type, of_a_pair ? event.element.qp->qp_num : 0});
    }
    if (!events_.empty()) until_check_ = 1;
}

std::string PortEvents::port_change_hints() const {
    std::string out;
    if (!port_hint_.empty()) out += "; " + port_hint_;
    if (!address_hint_.empty()) out += "; " + address_hint_ + ", and peers know the old one: start the job again";
    return out;
}

void PortEvents::handle_event(network::WireListener& listener, ConnectionTable& connections, const Event& event) {
    const char* const text = port_.library().event_type_str(event.type);
    switch (event.type) {
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR: {
            Connection* const found = connections.find(event.queue_pair);
            if (found != nullptr)
                connections.lose(listener, *found,
                                 {found->role().lane_id.lane == 0 ? Code::peer_dead : Code::system,
                                  fmt::format("its queue pair stopped: {}{}", text, port_change_hints())});
            return;
        }
        case IBV_EVENT_PORT_ERR: port_hint_ = fmt::format("port {} went down", port_.name()); return;
        case IBV_EVENT_PORT_ACTIVE: port_hint_.clear(); return;
        case IBV_EVENT_LID_CHANGE:
        case IBV_EVENT_GID_CHANGE:
        case IBV_EVENT_PKEY_CHANGE: address_hint_ = port_.describe_changes(); return;
        case IBV_EVENT_CQ_ERR:
        case IBV_EVENT_SRQ_ERR:  // without receives no message arrives
        case IBV_EVENT_DEVICE_FATAL:
            return connections.lose_all(listener,
                                        {Code::unreachable, fmt::format("RDMA port {}: {}", port_.name(), text)});
        default: return;
    }
}

}  // namespace npushmem::verbs
