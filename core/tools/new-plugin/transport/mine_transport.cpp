// SPDX-License-Identifier: BSD-3-Clause
#include "mine_transport.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstring>

#include "npushmem/plugin/local_atomic.hpp"

namespace mine_plugin {

using npushmem::Host;
using npushmem::LogLevel;
using npushmem::Reach;
using npushmem::RegisteredMemory;
using npushmem::Transport;

namespace {

// The keys of the poller: a kind in the upper half, a number in the lower.
constexpr std::uint64_t wake_key = 1;
constexpr std::uint64_t listener_key = 2;
constexpr std::uint64_t requester_keys = std::uint64_t{1} << 32;
constexpr std::uint64_t responder_keys = std::uint64_t{2} << 32;

// Beyond this number events are dropped; the log has them.
constexpr std::size_t max_events = 1024;

struct Range {
    std::uint64_t min;
    std::uint64_t max;
};

Result<std::uint64_t> read_number(const Host& host, const npushmem_config_row& row, Range range) {
    const std::string text = host.config(row.name, row.default_value);
    std::uint64_t out = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
    const bool good = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
    if (good && out >= range.min && out <= range.max) return out;
    return Status{Code::config, "NPUSHMEM_" + std::string(row.name) + "='" + text + "': expected a number from " +
                                    std::to_string(range.min) + " to " + std::to_string(range.max)};
}

bool is_same_host(const npushmem_host_id& a, const npushmem_host_id& b) {
    return a.machine == b.machine && a.space == b.space && a.emulated == b.emulated;
}

}  // namespace

Result<std::unique_ptr<Transport>> MineTransport::open(const Host& host, const npushmem_transport_params& params) {
    const auto depth = read_number(host, config_rows[0], {1, 65536});
    if (!depth.ok()) return depth.status();
    const auto piece = read_number(host, config_rows[1], {64, max_piece});
    if (!piece.ok()) return piece.status();
    if (params.pe < 0 || params.pe >= params.npes || params.npes > 1 << Token::pe_bits)
        return Status{Code::range, "PE " + std::to_string(params.pe) + " of " + std::to_string(params.npes) +
                                       " PEs: expected at most " + std::to_string(1 << Token::pe_bits) + " PEs"};
    auto poller = Poller::make();
    if (!poller.ok()) return poller.status();
    std::unique_ptr<MineTransport> out(
        new MineTransport(host, params, {depth.value(), piece.value()}, std::move(poller).value()));
    if (Status started = out->start(); !started.ok()) return started;
    return std::unique_ptr<Transport>(std::move(out));
}

Status MineTransport::start() {
    auto listener = Socket::listen(address_);
    if (!listener.ok()) return listener.status();
    listener_ = std::move(listener).value();
    wake_ = Socket(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_.is_open()) return system_failure("cannot make an event descriptor");
    if (Status added = poller_.add(wake_.descriptor(), wake_key); !added.ok()) return added;
    if (Status added = poller_.add(listener_.descriptor(), listener_key); !added.ok()) return added;
    // The thread inherits the mask: the program's signal handlers run in the program's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    host_.log(LogLevel::debug, "PE " + std::to_string(params_.pe) + " listens on @" + address_.name);
    return {};
}

MineTransport::~MineTransport() {
    if (!thread_.joinable()) return;                   // open failed
    stopping_.store(true, std::memory_order_relaxed);  // published by the write
    const std::uint64_t one = 1;
    (void)!::write(wake_.descriptor(), &one, sizeof one);
    thread_.join();
    say_goodbye();
}

// A peer that has connected and was not accepted yet gets its goodbye as well, or it would report a death.
void MineTransport::say_goodbye() {
    for (const auto& requester : requesters_)
        if (requester->pe() != params_.pe) requester->socket().say_goodbye();
    for (const auto& entry : responders_)
        if (entry.second.pe() != params_.pe) entry.second.socket().say_goodbye();
    for (Socket waiting = listener_.accept(limits_.piece); waiting.is_open(); waiting = listener_.accept(limits_.piece))
        waiting.say_goodbye();
}

Reach MineTransport::reach(const npushmem_peer& peer) {
    if (!is_same_host(peer.host, params_.host)) return {0, 0, 0, "different host"};
    if (peer.host.user != params_.host.user) return {0, 0, 0, "same host, but another user"};
    if (peer.address == nullptr) return {0, 0, 0, "the peer has not opened transport mine"};
    return {capabilities, npushmem::all_atomics, npushmem::all_atomics, "same host, Unix socket"};
}

Status MineTransport::connect(const npushmem_peer& peer) {
    const std::string who = "PE " + std::to_string(peer.pe);
    if (peer.pe < 0 || peer.pe >= params_.npes)
        return {Code::range, who + " is outside a job of " + std::to_string(params_.npes) + " PEs"};
    if (requester_of(peer.pe) != nullptr) return {Code::state, who + " is already connected"};
    const auto address = Address::decode(peer);
    if (!address.ok()) return address.status();
    auto socket = Socket::connect(address.value(), params_.pe, limits_.piece);
    if (!socket.ok()) return socket.status().within("connect to " + who);
    const std::uint64_t key = requester_keys | static_cast<std::uint64_t>(peer.pe);
    const int descriptor = socket.value().descriptor();
    requesters_.push_back(std::make_unique<Requester>(peer.pe, std::move(socket).value(), limits_, poller_, key));
    // Release: pairs with the load in requester_of. Before `add`, so that the thread finds the key's object.
    requester_of_[static_cast<std::size_t>(peer.pe)].store(requesters_.back().get(), std::memory_order_release);
    return poller_.add(descriptor, key);
}

Result<RegisteredMemory> MineTransport::register_memory(const npushmem_memory& memory) {
    Handle handle;
    handle.region = regions_.add(memory);
    handle.bytes = memory.bytes;
    handle.pe = static_cast<std::uint64_t>(params_.pe);
    return RegisteredMemory{handle.region, handle.encode()};
}

Code MineTransport::deregister_memory(std::uint64_t region) {
    return regions_.remove(region) ? Code::ok : Code::argument;
}

Result<std::uint64_t> MineTransport::import_memory(int pe, std::span<const std::byte> handle) {
    const auto decoded = Handle::decode(handle, pe);
    if (!decoded.ok()) return decoded.status();
    return imports_.insert({pe, decoded.value().region, decoded.value().bytes});
}

Code MineTransport::release_memory(std::uint64_t remote) {
    return imports_.remove(remote).has_value() ? Code::ok : Code::argument;
}

Result<std::uint64_t> MineTransport::create_queue() { return queues_.insert(std::make_shared<Queue>()); }

Code MineTransport::destroy_queue(std::uint64_t queue) {
    const auto removed = queues_.remove(queue);
    if (!removed) return Code::argument;
    // Not `requesters_`, which another thread in `connect` may change.
    for (int pe = 0; pe < params_.npes; ++pe)
        if (Requester* const requester = requester_of(pe); requester != nullptr) requester->drop(**removed);
    return Code::ok;
}

Requester* MineTransport::requester_of(int pe) const {
    if (pe < 0 || pe >= params_.npes) return nullptr;
    // Acquire: pairs with the store in `connect`: the object is complete.
    return requester_of_[static_cast<std::size_t>(pe)].load(std::memory_order_acquire);
}

// Checks everything that this side knows, and fills in the request. The target checks again.
Code MineTransport::check(const npushmem_rma& op, Kind kind, Header& data) {
    const Import* const import = imports_.find(op.remote);
    if (import == nullptr || import->pe != op.pe) return Code::argument;
    if (!fits(op.offset, op.bytes, import->bytes)) return Code::range;
    if (op.bytes > 0 && op.local == nullptr && (kind == Kind::put || kind == Kind::get)) return Code::argument;
    data.kind = kind;
    data.region = import->region;
    data.offset = op.offset;
    data.bytes = op.bytes;
    return Code::ok;
}

Code MineTransport::post(std::uint64_t queue, int pe, Operation operation, std::uint64_t* token) {
    const std::shared_ptr<Queue>* const found = queues_.find(queue);
    if (found == nullptr) return Code::argument;
    std::uint64_t number = 0;
    const bool empty = operation.data.bytes == 0 && !operation.last;
    if (!empty) {
        Requester* const requester = requester_of(pe);
        if (requester == nullptr) return Code::state;  // not connected
        operation.queue = *found;
        const Code code = requester->post(std::move(operation), number);
        if (code != Code::ok) return code;
    }
    if (token != nullptr) *token = number;
    return Code::ok;
}

Code MineTransport::put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    Operation operation;
    operation.local = static_cast<std::byte*>(op.local);
    const Code code = check(op, Kind::put, operation.data);
    return code == Code::ok ? post(queue, op.pe, std::move(operation), token) : code;
}

Code MineTransport::get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    Operation operation;
    operation.local = static_cast<std::byte*>(op.local);
    const Code code = check(op, Kind::get, operation.data);
    return code == Code::ok ? post(queue, op.pe, std::move(operation), token) : code;
}

Code MineTransport::atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
    if (op.operation >= NPUSHMEM_ATOMIC_COUNT || (op.width != 4 && op.width != 8)) return Code::argument;
    if (op.offset % op.width != 0) return Code::argument;
    if (npushmem::fetches(op.operation) && op.result == nullptr) return Code::argument;
    Operation operation;
    Header& last = operation.last.emplace();
    const Code code = check({op.pe, 0, op.remote, op.offset, nullptr, op.width}, Kind::atomic, last);
    if (code != Code::ok) return code;
    last.bytes = 0;  // no payload
    last.operation = op.operation;
    last.width = op.width;
    last.operand = op.operand;
    last.compare = op.compare;
    operation.result = npushmem::fetches(op.operation) ? op.result : nullptr;
    return post(queue, op.pe, std::move(operation), token);
}

Code MineTransport::put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) {
    if (op.operation > NPUSHMEM_SIGNAL_ADD || op.signal_offset % sizeof op.signal != 0) return Code::argument;
    Operation operation;
    operation.local = static_cast<std::byte*>(op.data.local);
    Code code = check(op.data, Kind::put, operation.data);
    if (code != Code::ok) return code;
    Header& last = operation.last.emplace();
    code = check({op.data.pe, 0, op.signal_remote, op.signal_offset, nullptr, sizeof op.signal}, Kind::signal, last);
    if (code != Code::ok) return code;
    last.bytes = 0;  // no payload
    last.operation = static_cast<std::uint8_t>(op.operation);
    last.operand = op.signal;
    return post(queue, op.data.pe, std::move(operation), token);
}

// A target executes the requests of this PE in the order in which they were posted.
Code MineTransport::fence(std::uint64_t queue) { return queues_.find(queue) != nullptr ? Code::ok : Code::argument; }

Code MineTransport::quiet(std::uint64_t queue) {
    const std::shared_ptr<Queue>* const found = queues_.find(queue);
    if (found == nullptr) return Code::argument;
    if (!(*found)->is_quiet()) (void)run_once(0);
    return (*found)->is_quiet() ? (*found)->take_failures() : Code::again;
}

Code MineTransport::test(std::uint64_t queue, std::uint64_t token) {
    const std::shared_ptr<Queue>* const found = queues_.find(queue);
    if (found == nullptr) return Code::argument;
    if (token == 0) return Code::ok;
    const Requester* const requester = requester_of(static_cast<int>(Token::decode(token).pe));
    if (requester == nullptr) return Code::argument;
    const Code code = requester->test(**found, token);
    if (code != Code::again) return code;
    (void)run_once(0);
    return requester->test(**found, token);
}

Code MineTransport::progress() { return run_once(0) ? Code::ok : Code::again; }

Code MineTransport::poll_event(npushmem_event& out) {
    // Acquire: pairs with the store in `report`; a late view only delays the event to the next call.
    if (!has_events_.load(std::memory_order_acquire)) return Code::again;
    const std::lock_guard lock(events_mutex_);
    if (events_.empty()) return Code::again;
    out = events_.front();
    events_.pop_front();
    has_events_.store(!events_.empty(), std::memory_order_release);
    return Code::ok;
}

void MineTransport::report(Code code, int pe, const std::string& message) {
    host_.log(LogLevel::info, message);
    npushmem_event event{};
    event.struct_size = sizeof event;
    event.code = static_cast<std::int32_t>(code);
    event.pe = pe;
    event.message[message.copy(event.message, sizeof event.message - 1)] = '\0';
    const std::lock_guard lock(events_mutex_);
    if (events_.size() < max_events) events_.push_back(event);
    has_events_.store(true, std::memory_order_release);
}

// Two connections end when a peer dies, the one from it and the one to it; the program gets one event.
void MineTransport::report_death(int pe) {
    if (!dead_.insert(pe).second) return;
    report(Code::peer_dead, pe, "PE " + std::to_string(pe) + " has ended without closing its connection");
}

void MineTransport::run() {
    while (!stopping_.load(std::memory_order_relaxed)) (void)run_once(-1);  // published by the event descriptor
}

// Returns whether a connection was served.
bool MineTransport::run_once(int timeout_ms) {
    std::array<std::uint64_t, Poller::max_ready> keys;
    const int count = poller_.wait(keys, timeout_ms);
    if (count == 0) return false;
    const std::lock_guard lock(progress_mutex_);
    for (int i = 0; i < count; ++i) serve(keys[static_cast<std::size_t>(i)]);
    return true;
}

// Another thread may have served the key meanwhile: then there is nothing to receive, or no such connection.
void MineTransport::serve(std::uint64_t key) {
    if (key == wake_key) return;
    if (key == listener_key) return accept_all();
    if (key < responder_keys) return serve_replies(*requester_of(static_cast<int>(key - requester_keys)));
    const auto found = responders_.find(key);
    if (found != responders_.end()) serve_peer(key, found->second);
}

void MineTransport::accept_all() {
    for (;;) {
        Socket socket = listener_.accept(limits_.piece);
        if (!socket.is_open()) return;
        const std::uint64_t key = responder_keys + ++last_responder_;
        const Status added = poller_.add(socket.descriptor(), key);
        if (!added.ok()) return report(Code::system, -1, added.message());
        responders_.try_emplace(key, std::move(socket), regions_, address_.secret);
    }
}

void MineTransport::serve_peer(std::uint64_t key, Responder& responder) {
    const bool waited = responder.has_unsent_reply();
    const Responder::State state = responder.progress(buffer_);
    if (state == Responder::State::open) {
        if (responder.has_unsent_reply() == waited) return;
        const auto interest = waited ? Poller::Interest::input : Poller::Interest::room;
        return poller_.watch(responder.socket().descriptor(), key, interest);
    }
    if (state == Responder::State::dead) report_death(responder.pe());
    if (state == Responder::State::malformed)
        report(
            Code::protocol, responder.pe(),
            "a malformed request of PE " + std::to_string(responder.pe()) + " (-1: unknown); its connection is closed");
    responders_.erase(key);  // closes the socket, which leaves the poller
}

void MineTransport::serve_replies(Requester& requester) {
    const Requester::State state = requester.progress(buffer_);
    if (state == Requester::State::open) return;
    poller_.remove(requester.socket().descriptor());
    const int pe = requester.pe();
    // The event first: a caller whose operation fails finds it.
    if (state == Requester::State::dead) {
        report_death(pe);
        requester.fail(Code::peer_dead);
    } else if (state == Requester::State::malformed) {
        report(Code::protocol, pe,
               "a malformed reply of PE " + std::to_string(pe) + "; its connection is not used again");
        requester.fail(Code::protocol);
    } else {
        requester.fail(Code::unreachable);  // the peer has closed its transport
    }
}

}  // namespace mine_plugin
