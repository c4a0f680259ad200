// SPDX-License-Identifier: BSD-3-Clause
#include "mine_connections.hpp"

#include <csignal>

namespace mine_plugin {
namespace {

// The keys of connections: a kind in the upper half, a number in the lower.
constexpr std::uint64_t requester_keys = std::uint64_t{1} << 32;
constexpr std::uint64_t responder_keys = std::uint64_t{2} << 32;

// Beyond this number events are dropped; the log has them.
constexpr std::size_t max_events = 1024;

}  // namespace

void Events::report(Code code, int pe, const std::string& message) {
    host_.log(npushmem::LogLevel::info, message);
    npushmem_event event{};
    event.struct_size = sizeof event;
    event.code = static_cast<std::int32_t>(code);
    event.pe = pe;
    event.message[message.copy(event.message, sizeof event.message - 1)] = '\0';
    const std::lock_guard lock(mutex_);
    if (events_.size() < max_events) events_.push_back(event);
    has_events_.store(true, std::memory_order_release);
}

Code Events::poll(npushmem_event& out) {
    // Acquire: pairs with the store in `report`; a late view only delays the event to the next call.
    if (!has_events_.load(std::memory_order_acquire)) return Code::again;
    const std::lock_guard lock(mutex_);
    if (events_.empty()) return Code::again;
    out = events_.front();
    events_.pop_front();
    has_events_.store(!events_.empty(), std::memory_order_release);
    return Code::ok;
}

Connections::Connections(SocketWire wire, const npushmem_transport_params& params, Requester::Limits limits,
                         Regions& regions, Events& events)
    : pe_(params.pe),
      limits_(limits),
      regions_(regions),
      events_(events),
      wire_(std::move(wire)),
      requester_of_(static_cast<std::size_t>(params.npes)) {
    // The thread inherits the mask: the program's signal handlers run in the program's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Connections::~Connections() {
    stopping_.store(true, std::memory_order_relaxed);  // published by the wake-up
    wire_.wake();
    thread_.join();
    for (const auto& requester : requesters_)
        if (requester->pe() != pe_) requester->close();
    // A peer that has connected and was not accepted yet gets a bye as well, or it would report a death.
    accept_all();
    for (auto& [key, responder] : responders_)
        if (responder.pe() != pe_) responder.close();
}

Status Connections::connect(const npushmem_peer& peer) {
    const std::string who = "PE " + std::to_string(peer.pe);
    if (peer.pe < 0 || static_cast<std::size_t>(peer.pe) >= requester_of_.size())
        return {Code::range, who + " is outside a job of " + std::to_string(requester_of_.size()) + " PEs"};
    if (requester_of(peer.pe) != nullptr) return {Code::state, who + " is already connected"};
    const auto address = Address::decode(peer);
    if (!address.ok()) return address.status();
    auto connected = wire_.connect(address.value(), requester_keys | static_cast<std::uint64_t>(peer.pe));
    if (!connected.ok()) return connected.status().within("connect to " + who);
    std::unique_ptr<Connection> connection = std::move(connected).value();
    Header hello;
    hello.kind = Kind::hello;
    hello.pe = pe_;
    hello.operand = address.value().secret;
    if (connection->send(hello, {}) != Connection::Sent::yes)
        return {Code::unreachable, "connect to " + who + ": it has closed the connection before the hello"};
    requesters_.push_back(std::make_unique<Requester>(peer.pe, std::move(connection), limits_));
    // Release: pairs with the load in requester_of.
    requester_of_[static_cast<std::size_t>(peer.pe)].store(requesters_.back().get(), std::memory_order_release);
    const std::lock_guard lock(mutex_);
    if (dead_.contains(peer.pe)) requesters_.back()->fail(Code::peer_dead);
    return {};
}

Code Connections::forget(int pe) {
    if (pe < 0 || static_cast<std::size_t>(pe) >= requester_of_.size()) return Code::argument;
    const std::lock_guard lock(mutex_);
    dead_.insert(pe);
    if (Requester* const requester = requester_of(pe); requester != nullptr) requester->fail(Code::peer_dead);
    std::erase_if(responders_, [pe](const auto& entry) { return entry.second.pe() == pe; });
    wire_.resume_accept();
    return Code::ok;
}

Requester* Connections::requester_of(int pe) const {
    if (pe < 0 || static_cast<std::size_t>(pe) >= requester_of_.size()) return nullptr;
    // Acquire: pairs with the store in `connect`: the object is complete.
    return requester_of_[static_cast<std::size_t>(pe)].load(std::memory_order_acquire);
}

Code Connections::post(const std::shared_ptr<Queue>* queue, int pe, Operation operation, std::uint64_t* token) {
    if (queue == nullptr) return Code::argument;
    std::uint64_t number = 0;
    const bool empty = operation.data.bytes == 0 && !operation.last;
    if (!empty) {
        Requester* const requester = requester_of(pe);
        if (requester == nullptr) return Code::state;  // not connected
        operation.queue = *queue;
        const Code code = requester->post(std::move(operation), number);
        if (code != Code::ok) return code;
    }
    if (token != nullptr) *token = number;
    return Code::ok;
}

Code Connections::test(Queue& queue, std::uint64_t token) {
    if (token == 0) return Code::ok;
    const Requester* const requester = requester_of(static_cast<int>(Token::decode(token).pe));
    if (requester == nullptr) return Code::argument;
    const Code code = requester->test(queue, token);
    if (code != Code::again) return code;
    (void)progress(0);
    return requester->test(queue, token);
}

void Connections::drop(const Queue& queue) {
    // Not `requesters_`, which another thread in `connect` may change.
    for (const auto& entry : requester_of_)
        // Acquire: as in requester_of.
        if (Requester* const requester = entry.load(std::memory_order_acquire); requester != nullptr)
            requester->drop(queue);
}

void Connections::run() {
    while (!stopping_.load(std::memory_order_relaxed)) (void)progress(-1);  // published by the wake-up
}

bool Connections::progress(int timeout_ms) {
    SocketWire::Keys keys;
    const std::size_t count = wire_.wait(keys, timeout_ms);
    if (count == 0) return false;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) serve(keys[i]);
    return true;
}

// Another thread may have served the key meanwhile: then there is nothing to receive, or no such connection. While
// `connect` is under way there is no requester yet.
void Connections::serve(std::uint64_t key) {
    if (key == SocketWire::accept_key) return accept_all();
    if (key < responder_keys) {
        Requester* const requester = requester_of(static_cast<int>(key - requester_keys));
        const Code code = requester == nullptr ? Code::ok : requester->progress(buffer_);
        if (code == Code::ok) return;
        report_end(code, requester->pe());  // first: a caller whose operation fails finds the event
        requester->fail(code);
        return wire_.resume_accept();
    }
    const auto found = responders_.find(key);
    const Code code = found == responders_.end() ? Code::ok : found->second.progress(buffer_);
    if (code == Code::ok) return;
    report_end(code, found->second.pe());
    responders_.erase(found);
    wire_.resume_accept();
}

void Connections::accept_all() {
    for (;;) {
        const std::uint64_t key = responder_keys + ++last_responder_;
        auto accepted = wire_.accept(key);
        if (!accepted.ok()) return events_.report(Code::system, -1, accepted.status().message());
        if (accepted.value() == nullptr) return;
        responders_.try_emplace(key, std::move(accepted).value(), regions_, wire_.address().secret);
    }
}

// Two connections end when a peer dies, the one from it and the one to it; the program gets one event. A peer that has
// closed its connection is no event.
void Connections::report_end(Code code, int pe) {
    const std::string who = "PE " + std::to_string(pe);
    if (code == Code::peer_dead && dead_.insert(pe).second)
        events_.report(code, pe, who + " has ended without closing its connection");
    if (code == Code::protocol)
        events_.report(code, pe, "a malformed message of " + who + " (-1: unknown); its connection is closed");
}

}  // namespace mine_plugin
