// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/network_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/base/parse.hpp"
#include "transports/network/address_codec.hpp"

namespace npushmem::network {

NetworkTransport::NetworkTransport(const Host& host, const npushmem_transport_params& params,
                                   std::unique_ptr<Wire> wire, NetworkSettings settings)
    : my_pe_(params.pe),
      settings_(settings),
      wire_(std::move(wire)),
      peers_(params.npes, settings.peer_timeout, settings.tick),
      keys_(params.npes),
      operations_(events_),
      memory_(peers_, wire_),
      event_handler_(host, params.pe, wire_, events_, peers_, keys_, lanes_, memory_, operations_),
      lanes_(peers_, settings.lanes, wire_, keys_, event_handler_),
      order_(params.pe, wire_, lanes_, operations_),
      driver_(lock_, wire_, event_handler_, lanes_, operations_),
      initiator_(params.pe, wire_, peers_, lanes_, memory_, operations_, order_, driver_) {}

NetworkTransport::~NetworkTransport() {
    driver_.stop_thread();
    const Lock guard(lock_);
    const std::vector<int> peers = send_goodbyes();
    const auto deadline = std::chrono::steady_clock::now() + settings_.max_goodbye;
    constexpr std::chrono::microseconds pause{100};
    while (has_unsent_goodbyes(peers) && std::chrono::steady_clock::now() < deadline)
        if (!driver_.drive()) std::this_thread::sleep_for(pause);
    // Linux resets a connection that is closed with unread data, and discards what is under way to the peer.
    constexpr int max_rounds = 64;
    constexpr int max_idle = 4;  // a call may look at one of several connections
    for (int i = 0, idle = 0; i < max_rounds && idle < max_idle; ++i) idle = driver_.drive() ? 0 : idle + 1;
    wire_.reset();  // it reports nothing afterwards
}

// Connects to no further peer: a connection that is closed while it is being established harms both ends over UCX.
std::vector<int> NetworkTransport::send_goodbyes() {
    std::vector<int> out;
    for (int pe = 0; pe < peers_.count(); ++pe) {
        if (!lanes_.has_sent({pe}) || peers_.failure(pe) != Code::ok) continue;
        lanes_.send_or_queue({pe}, bytes_of(make_message<MessageHeader>(MessageKind::goodbye, my_pe_)));
        out.push_back(pe);
    }
    return out;
}

bool NetworkTransport::has_unsent_goodbyes(const std::vector<int>& peers) {
    const bool unsent = wire_->has_unsent_messages();
    return std::ranges::any_of(
        peers, [&](int pe) { return peers_.failure(pe) == Code::ok && (unsent || lanes_.has_backlog({pe})); });
}

Result<Bytes> NetworkTransport::address() {
    const Lock guard(lock_);
    if (!keys_.status().ok()) return keys_.status();
    auto wire = wire_->address();
    if (!wire.ok()) return wire;
    Bytes out = encode(EndpointAddress{wire_->traits().protocol, std::move(wire).value(), keys_.own()});
    if (out.size() > NPUSHMEM_ADDRESS_MAX)
        return Status{Code::unsupported,
                      fmt::format("the address of {} has {} bytes with its header, the maximum is {}",
                                  wire_->traits().name, out.size(), NPUSHMEM_ADDRESS_MAX)};
    return out;
}

Status NetworkTransport::start_thread() {
    if (!settings_.thread) return {};
    const auto check = [this] {
        const Lock guard(lock_);
        event_handler_.check_peers();
    };
    return driver_.start_thread(check, settings_.tick);
}

Reach NetworkTransport::reach(const npushmem_peer& peer) {
    const Lock guard(lock_);
    if (peer.pe == my_pe_) return {0, 0, 0, "the PE itself: needs no network"};
    const auto* bytes = static_cast<const std::byte*>(peer.address);
    if (bytes == nullptr || peer.address_bytes == 0) return {0, 0, 0, "that PE has not opened this transport"};
    const auto address = decode_address({bytes, peer.address_bytes});
    if (!address.ok()) return {0, 0, 0, address.status().message()};
    const WireTraits& traits = wire_->traits();
    if (address.value().protocol != traits.protocol)
        return {0, 0, 0, fmt::format("that PE uses '{}', this one '{}'", address.value().protocol, traits.protocol)};
    if (!peers_.contains(peer.pe)) return {0, 0, 0, fmt::format("PE {} does not belong to this job", peer.pe)};
    if (peer.host_name != nullptr) peers_.set_host(peer.pe, peer.host_name);
    auto route = wire_->route_to(peer.pe, address.value().wire);
    if (!route.ok()) return {0, 0, 0, route.status().message()};
    if (Status started = start_thread(); !started.ok()) return {0, 0, 0, started.message()};
    constexpr std::uint32_t all_atomics = (1U << NPUSHMEM_ATOMIC_COUNT) - 1;
    std::uint64_t capabilities = settings_.capabilities();
    if (traits.message_bytes < sizeof(PutStridedRequest) + NPUSHMEM_PUT_STRIDED_MAX)
        capabilities &= ~NPUSHMEM_CAP_PUT_STRIDED;
    return {capabilities,           all_atomics, all_atomics, std::move(route).value(), traits.latency_ns,
            traits.bytes_per_second};
}

Status NetworkTransport::connect(const npushmem_peer& peer) {
    const Lock guard(lock_);
    if (!peers_.contains(peer.pe) || peer.pe == my_pe_)
        return {Code::argument, fmt::format("cannot connect PE {} to PE {}", my_pe_, peer.pe)};
    const auto address = decode_address({static_cast<const std::byte*>(peer.address), peer.address_bytes});
    if (!address.ok()) return address.status();
    if (!peers_.is_added(peer.pe)) {
        if (Status added = wire_->add_peer(peer.pe, address.value().wire); !added.ok())
            return added.within(fmt::format("cannot reach {} over {}", peers_.name_of(peer.pe), wire_->traits().name));
        peers_.record_added(peer.pe);
    }
    keys_.set(peer.pe, address.value().key);
    auto own = wire_->address();
    if (!own.ok()) return own.status();
    const auto hello = make_message<MessageHeader>(MessageKind::hello, my_pe_);
    Bytes bytes(sizeof hello);
    std::memcpy(bytes.data(), &hello, sizeof hello);
    bytes.insert(bytes.end(), keys_.own().begin(), keys_.own().end());
    bytes.insert(bytes.end(), own.value().begin(), own.value().end());
    lanes_.send_or_queue({peer.pe}, bytes);
    return {};
}

Result<RegisteredMemory> NetworkTransport::register_memory(const npushmem_memory& memory) {
    const Lock guard(lock_);
    return memory_.register_memory(memory);
}

Code NetworkTransport::deregister_memory(std::uint64_t region) {
    const Lock guard(lock_);
    return memory_.deregister_memory(region);
}

Result<std::uint64_t> NetworkTransport::import_memory(int pe, std::span<const std::byte> handle) {
    const Lock guard(lock_);
    return memory_.import_memory(pe, handle);
}

Code NetworkTransport::release_memory(std::uint64_t remote) {
    const Lock guard(lock_);
    return memory_.release_memory(remote);
}

Result<std::uint64_t> NetworkTransport::create_queue() {
    const Lock guard(lock_);
    return operations_.create_queue();
}

template <class Condition>
void NetworkTransport::drive_while(Lock& guard, std::chrono::steady_clock::time_point deadline,
                                   const Condition& condition) {
    constexpr int min_rounds = 64;  // what has arrived counts, however long this thread was not running
    for (int round = 0; condition() && (round < min_rounds || std::chrono::steady_clock::now() < deadline); ++round) {
        if (driver_.drive()) continue;
        guard.unlock();  // lets the thread and callers of other queues proceed
        std::this_thread::yield();
        guard.lock();
    }
}

Code NetworkTransport::destroy_queue(std::uint64_t number) {
    Lock guard(lock_);
    const OutgoingQueue* const queue = operations_.find_queue(number);
    if (queue == nullptr) return Code::argument;
    // Without a peer timeout, the default lets the job end.
    constexpr std::chrono::milliseconds otherwise{30'000};
    const bool unlimited = settings_.peer_timeout == std::chrono::milliseconds::zero();
    const auto deadline = std::chrono::steady_clock::now() + (unlimited ? otherwise : settings_.peer_timeout);
    drive_while(guard, deadline, [&] { return operations_.wire_holds(*queue, peers_); });
    for (const LaneId held : operations_.abandon(*queue)) lanes_.close_when_released(held);
    for (const auto& [pe, flow] : queue->flows) {
        lanes_.release(flow->lane_id);
        driver_.report_arrival();  // the end of a lane may drive the wire
    }
    operations_.erase_queue(number);
    return Code::ok;
}

Code NetworkTransport::put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    const Lock guard(lock_);
    return initiator_.rma(Operation::Kind::write, queue, op, token);
}

Code NetworkTransport::get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    const Lock guard(lock_);
    return initiator_.rma(Operation::Kind::read, queue, op, token);
}

Code NetworkTransport::atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
    const Lock guard(lock_);
    return initiator_.atomic(queue, op, token);
}

Code NetworkTransport::put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) {
    const Lock guard(lock_);
    return initiator_.put_signal(queue, op, token);
}

Code NetworkTransport::put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token) {
    const Lock guard(lock_);
    return initiator_.put_strided(queue, op, token);
}

Code NetworkTransport::fence(std::uint64_t number) {
    const Lock guard(lock_);
    const OutgoingQueue* const queue = operations_.find_queue(number);
    if (queue == nullptr) return Code::argument;
    order_.fence(*queue);
    return Code::ok;
}

Code NetworkTransport::quiet(std::uint64_t number) {
    const Lock guard(lock_);
    OutgoingQueue* const queue = operations_.find_queue(number);
    if (queue == nullptr) return Code::argument;
    driver_.count_call();
    // The missing events have often arrived and need only be polled.
    if (!order_.poll_quiet(*queue) && !(driver_.drive() && order_.poll_quiet(*queue))) return Code::again;
    return operations_.report_to_caller(*queue, queue->take_failures());
}

Code NetworkTransport::test(std::uint64_t number, std::uint64_t token) {
    const Lock guard(lock_);
    OutgoingQueue* const queue = operations_.find_queue(number);
    if (queue == nullptr) return Code::argument;
    if (token == 0) return Code::ok;
    driver_.count_call();
    if (operations_.find(token) != nullptr) (void)driver_.drive();
    const Operation* const operation = operations_.find(token);
    if (operation != nullptr && operation->flow != nullptr) return Code::again;
    return operations_.report_to_caller(*queue, queue->take_failure(token));
}

Code NetworkTransport::progress() {
    driver_.count_call();  // also while another thread drives
    const Lock guard(lock_, std::try_to_lock);
    if (!guard.owns_lock()) return Code::again;
    return driver_.drive() ? Code::ok : Code::again;
}

Code NetworkTransport::poll_event(npushmem_event& out) { return events_.poll(lock_, out); }

Code NetworkTransport::forget(int pe) {
    Lock guard(lock_);
    if (!peers_.contains(pe) || pe == my_pe_) return Code::argument;
    // What a peer sent before its end may have arrived here: the wire would write it to memory of callers whose
    // operations have failed. Such operations complete first. A wire that never reports an end holds them for ever.
    constexpr std::chrono::milliseconds limit{100};
    drive_while(guard, std::chrono::steady_clock::now() + limit, [&] { return operations_.wire_holds(pe); });
    event_handler_.forget(pe);
    return Code::ok;
}

Code NetworkTransport::report_arrivals(void (*arrived)(void* context), void* context) {
    const Lock guard(lock_);
    if (!settings_.thread || !wire_->traits().arrives_in_progress) return Code::unsupported;
    driver_.report_arrivals(arrived, context);
    return Code::ok;
}

Result<NetworkSettings> read_settings(const Host& host, const std::string& prefix) {
    NetworkSettings out;
    const std::string thread_name = prefix + "PROGRESS_THREAD";
    const auto thread = parse_bool(host.config(thread_name.c_str(), "true"));
    if (!thread.ok()) return thread.status().within("NPUSHMEM_" + thread_name);
    out.thread = thread.value();
    const std::string peer_timeout_name = prefix + "PEER_TIMEOUT";
    const auto peer_timeout = parse_duration(host.config(peer_timeout_name.c_str(), "30s"));
    if (!peer_timeout.ok()) return peer_timeout.status().within("NPUSHMEM_" + peer_timeout_name);
    out.peer_timeout = std::chrono::ceil<std::chrono::milliseconds>(peer_timeout.value());
    const std::string lanes_name = prefix + "LANES";
    constexpr std::int64_t max_lanes = 1024;
    const auto lanes = parse_integer(host.config(lanes_name.c_str(), std::to_string(out.lanes)), 1, max_lanes);
    if (!lanes.ok()) return lanes.status().within("NPUSHMEM_" + lanes_name);
    out.lanes = static_cast<std::uint32_t>(lanes.value());
    return out;
}

Result<bool> read_native_atomics(const Host& host, const std::string& prefix) {
    const std::string name = prefix + "NATIVE_ATOMICS";
    const std::string word = lowercase(host.config(name.c_str(), "auto"));
    if (word != "auto" && word != "always" && word != "never")
        return Status{Code::config,
                      fmt::format("NPUSHMEM_{}: {} is invalid; expected one of: auto, always, never", name, word)};
    return word == "always";
}

}  // namespace npushmem::network
