// SPDX-License-Identifier: BSD-3-Clause
// Handles the completions of the device, and events of the port and of queue pairs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transports/network/wire.hpp"
#include "transports/verbs/connection_manager.hpp"
#include "transports/verbs/key_exchange.hpp"
#include "transports/verbs/messages.hpp"
#include "transports/verbs/transfers.hpp"

namespace npushmem::verbs {

// The asynchronous events of the device. Explains failures by the changes of the port that the events report.
class PortEvents {
public:
    // `port` outlives this object.
    explicit PortEvents(OpenedPort& port) : port_(port) {}

    // Takes the device's events for the next `handle`.
    void drain();
    [[nodiscard]] bool empty() const { return events_.empty(); }
    // Drops the events of a queue pair that has been destroyed.
    void forget(std::uint32_t queue_pair) {
        std::erase_if(events_, [&](const Event& event) { return event.queue_pair == queue_pair; });
    }
    // Counts an idle poll. True when the events are to be handled now: asking the device is slow.
    [[nodiscard]] bool is_due() { return --until_check_ == 0; }
    // True when there were events.
    bool handle(network::WireListener& listener, ConnectionTable& connections);
    // Changes of the port, as a suffix for error messages.
    [[nodiscard]] std::string port_change_hints() const;

private:
    static constexpr unsigned polls_per_check = 256;

    // A copy of a device event, because its queue pair may be destroyed before the event is handled.
    struct Event {
        ibv_event_type type;
        std::uint32_t queue_pair;  // number of the queue pair; 0: none
    };
    void handle_event(network::WireListener& listener, ConnectionTable& connections, const Event& event);

    OpenedPort& port_;
    std::vector<Event> events_;
    unsigned until_check_ = polls_per_check;
    std::string port_hint_;     // change of the port's state; empty: it is up
    std::string address_hint_;  // change of the port's address; empty: the address that peers know is valid
};

// The objects to which completions belong. They outlive the CompletionHandler.
struct CompletionTargets {
    RequestPoster& poster;
    MessageSender& messages;
    AtomicResults& atomics;
    Transfers& transfers;
    SharedReceiveQueue& receives;
    ConnectionManager& manager;
    KeyExchange& keys;
    ConnectionTable& connections;
    PortEvents& events;
};

// Polls the completion queue, and passes each completion to the operation, message or handshake to which it belongs.
class CompletionHandler {
public:
    CompletionHandler(OpenedPort& port, const CompletionTargets& targets) : port_(port), targets_(targets) {}

    // True when there were completions.
    bool poll(network::WireListener& listener);
    // Polls completions for the next `poll`. Returns their number, which is negative when the device has failed.
    int poll_ahead();
    [[nodiscard]] bool has_polled() const { return !polled_.empty(); }

private:
    static constexpr std::size_t polled_at_once = 16;

    void completed(network::WireListener& listener, const ibv_wc& completion);
    void posted_completed(network::WireListener& listener, const ibv_wc& completion);
    // Fails the connection of a request that has failed.
    void fail(Connection& connection, const ibv_wc& completion) const;
    void finish(network::WireListener& listener, const CompletionAction& posted, const Status& done);
    void received(network::WireListener& listener, const ibv_wc& completion);

    OpenedPort& port_;
    CompletionTargets targets_;
    std::vector<ibv_wc> polled_;  // by `poll_ahead`
    const Status ok_status_;      // the status of successful requests
};

}  // namespace npushmem::verbs
