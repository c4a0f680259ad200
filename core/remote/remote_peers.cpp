// SPDX-License-Identifier: BSD-3-Clause
#include "core/remote/remote_peers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace npushmem {

RemotePeers::RemotePeers(std::span<const NamedTransport> transports, const TransportMap& map, PeerDirectory directory,
                         const Waiter& waiter, Duration timeout)
    : transports_(transports), map_(map), directory_(std::move(directory)), waiter_(waiter), timeout_(timeout) {}

RemotePeers::~RemotePeers() {
    for (const Peer& peer : peers_) (void)named(peer.transport).transport->release_memory(peer.remote);
}

std::vector<RemotePeers::Peer>::iterator RemotePeers::place_of(int pe) {
    return std::ranges::lower_bound(peers_, pe, {}, &Peer::pe);
}

bool RemotePeers::is_linked(int pe) const {
    const auto index = static_cast<std::size_t>(pe);
    return index < linked_.size() && linked_[index];
}

void RemotePeers::set_linked(int pe, bool linked) {
    const auto index = static_cast<std::size_t>(pe);
    if (index >= linked_.size()) linked_.resize(index + 1);
    linked_[index] = linked;
}

Result<RemotePeers::Peer> RemotePeers::connect(int pe) {
    if (const auto known = place_of(pe); known != peers_.end() && known->pe == pe) return *known;
    const int number = map_.route(pe).transport;
    const NamedTransport& transport = named(number);
    if (!is_linked(pe)) {
        forgotten_.erase(pe);
        if (Status connected = transport.transport->connect(directory_.peer(number, pe)); !connected.ok())
            return connected.within(fmt::format("transport {}: cannot connect to PE {}", transport.name, pe));
        set_linked(pe, true);
    }
    // An imported PE must find room.
    if (peers_.size() == peers_.capacity()) peers_.reserve(std::max<std::size_t>(4, 2 * peers_.size()));
    auto remote = transport.transport->import_memory(pe, directory_.handle(number, pe));
    if (!remote.ok())
        return remote.status().within(fmt::format("transport {}: cannot use the memory of PE {}", transport.name, pe));
    return *peers_.insert(place_of(pe), Peer{pe, number, remote.value()});
}

Result<RemotePeers::Link> RemotePeers::open(int pe) {
    const std::lock_guard guard(setup_lock_);
    const auto connection = connect(pe);
    if (!connection.ok()) return connection.status();
    const int transport = connection.value().transport;
    const std::uint64_t remote = connection.value().remote;
    auto queue = named(transport).transport->create_queue();
    if (!queue.ok())
        return queue.status().within(
            fmt::format("transport {}: cannot create a queue for PE {}", named(transport).name, pe));
    return Link{pe, transport, remote, queue.value()};
}

// Without the lock: it may wait long for a silent peer, while other threads connect to theirs.
void RemotePeers::close(const Link& link) { (void)named(link.transport).transport->destroy_queue(link.queue); }

Result<void*> RemotePeers::map(int pe, const void* place) {
    const std::lock_guard guard(setup_lock_);
    const auto connection = connect(pe);
    if (!connection.ok()) return connection.status();
    Transport& transport = *named(connection.value().transport).transport;
    auto address = transport.map(connection.value().remote);
    if (address.ok() && address.value() == place) {
        (void)transport.release_memory(connection.value().remote);
        peers_.erase(place_of(pe));
    }
    return address;
}

void RemotePeers::forget(int pe) {
    const std::lock_guard guard(setup_lock_);
    if (forgotten_.contains(pe)) return;
    if (named(map_.route(pe).transport).transport->forget(pe) != Code::ok) return;
    forgotten_.insert(pe);
    set_linked(pe, false);
}

std::vector<int> RemotePeers::connected() {
    const std::lock_guard guard(setup_lock_);
    std::vector<int> pes;
    for (const Peer& peer : peers_) pes.push_back(peer.pe);
    return pes;
}

// Drives all transports: a PE that only receives has no queue, yet its transport may need progress, and a wait on one
// transport may depend on another.
void RemotePeers::progress_all() {
    for (std::size_t i = 0; i < transports_.size(); ++i)
        if (in_use(i)) (void)transports_[i].transport->progress();
}

void RemotePeers::progress_transports() {
    const std::unique_lock guard(progress_lock_, std::try_to_lock);
    if (guard.owns_lock()) progress_all();
}

Status RemotePeers::progress() {
    const std::unique_lock guard(progress_lock_, std::try_to_lock);
    if (!guard.owns_lock()) return {};
    progress_all();
    Status first;
    for (std::size_t i = 0; i < transports_.size() && first.ok(); ++i)
        if (in_use(i)) first = next_event(transports_[i]);
    return first;
}

Status RemotePeers::events_of(std::uint64_t transports) {
    if (transports == 0) return {};
    const std::lock_guard guard(progress_lock_);
    Status first;
    for (int transport = 0; transports >> transport != 0 && first.ok(); ++transport)
        if ((transports >> transport & 1U) != 0) first = next_event(named(transport));
    return first;
}

Status RemotePeers::failure_of(const Link& link, const char* what, Code code) {
    Status event = events_of(std::uint64_t{1} << link.transport);
    if (!event.ok()) return event;
    if (survives_deaths_ && ends_a_peer(code)) code = Code::peer_dead;
    return {code, fmt::format("transport {}: {} to PE {} failed: {}", named(link.transport).name, what, link.pe,
                              name_of(code))};
}

Status RemotePeers::supports(const npushmem_atomic& op) const {
    const Route& route = map_.route(op.pe);
    const std::uint32_t native = op.width == 4 ? route.reach.atomic_32 : route.reach.atomic_64;
    if (route.reach.has(NPUSHMEM_CAP_ATOMIC) && (native >> op.operation & 1U) != 0) return {};
    return {Code::unsupported, fmt::format("transport {} has no {}-bit atomic operation {} for PE {}",
                                           named(route.transport).name, op.width * 8, op.operation, op.pe)};
}

Status RemotePeers::next_event(const NamedTransport& named) {
    if (named.transport->poll_event(event_) != Code::ok) return {};
    const npushmem_event event = std::exchange(event_, {});
    if (listener_ && listener_(event.pe, static_cast<Code>(event.code))) return {};
    return {static_cast<Code>(event.code), fmt::format("transport {}: {}", named.name, text_of(event.message))};
}

}  // namespace npushmem
