// Set-up: peers and memory. The data path is in network_data_path.cpp, progress in network_progress.cpp.
#include "transports/network/network_transport.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/parse.hpp"

namespace npushmem::network {

NetworkTransport::NetworkTransport(const npushmem_transport_params& params, std::unique_ptr<Wire> wire,
                                   NetworkSettings settings)
    : my_pe_(params.pe),
      settings_(settings),
      peers_(static_cast<std::size_t>(std::max(params.npes, 1))),
      handler_(params.pe, regions_),
      wire_(std::move(wire)) {}

NetworkTransport::~NetworkTransport() {
    thread_.reset();
    const Lock guard(lock_);
    for (auto& [number, queue] : queues_) abandon(*queue);
    wire_.reset();  // it reports nothing afterwards
}

Result<Bytes> NetworkTransport::address() {
    const Lock guard(lock_);
    auto wire = wire_->address();
    if (!wire.ok()) return wire;
    Bytes out = encode(EndpointAddress{wire_->traits().protocol, std::move(wire).value()});
    if (out.size() > NPUSHMEM_ADDRESS_MAX)
        return Status{Code::unsupported,
                      fmt::format("the address of {} has {} bytes with its header, the maximum is {}",
                                  wire_->traits().name, out.size(), NPUSHMEM_ADDRESS_MAX)};
    return out;
}

NetworkTransport::Peer* NetworkTransport::peer_at(int pe) {
    return pe >= 0 && static_cast<std::size_t>(pe) < peers_.size() ? &peers_[static_cast<std::size_t>(pe)] : nullptr;
}

NetworkTransport::Lane& NetworkTransport::lane(LaneId lane_id) {
    auto& lanes = peers_[static_cast<std::size_t>(lane_id.pe)].lanes;
    if (lane_id.lane >= lanes.size()) lanes.resize(lane_id.lane + 1);
    return lanes[lane_id.lane];
}

// The lowest unused lane. When all are used, the usable one with the fewest users.
std::uint32_t NetworkTransport::acquire_lane(int pe) {
    auto& lanes = peers_[static_cast<std::size_t>(pe)].lanes;
    const auto load = [&](std::uint32_t i) { return std::pair(lanes[i].lost != Code::ok, lanes[i].users); };
    if (lanes.empty()) lanes.emplace_back();
    std::uint32_t best = 0;
    for (std::uint32_t i = 1; i < settings_.lanes && load(best) > std::pair(false, 0U); ++i) {
        if (i == lanes.size()) lanes.emplace_back();
        if (load(i) < load(best)) best = i;
    }
    ++lanes[best].users;
    return best;
}

void NetworkTransport::release_lane(LaneId lane_id) {
    Lane& given = lane(lane_id);
    if (--given.users > 0 || lane_id.lane == 0) return;
    given.backlog.clear();
    given.lost = Code::ok;
    if (std::exchange(given.must_close, false)) wire_->close(lane_id);
}

std::string NetworkTransport::name_of_peer(int pe) const {
    const std::string& host = peers_[static_cast<std::size_t>(pe)].host;
    return host.empty() ? fmt::format("PE {}", pe) : fmt::format("PE {} on host {}", pe, host);
}

Status NetworkTransport::start_thread() {
    if (!settings_.thread || thread_) return {};
    auto started = ProgressThread::start({[this] { return drive_for_thread(); },
                                          [this] { return driven_.load(std::memory_order_relaxed); },
                                          [this] { tick(); }, settings_.tick});
    if (!started.ok()) return started.status();
    thread_ = std::move(started).value();
    return {};
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
    Peer* const known = peer_at(peer.pe);
    if (known == nullptr) return {0, 0, 0, fmt::format("PE {} does not belong to this job", peer.pe)};
    if (peer.host_name != nullptr) known->host = peer.host_name;
    auto route = wire_->route_to(peer.pe, address.value().wire);
    if (!route.ok()) return {0, 0, 0, route.status().message()};
    if (Status started = start_thread(); !started.ok()) return {0, 0, 0, started.message()};
    constexpr std::uint32_t all_atomics = (1U << NPUSHMEM_ATOMIC_COUNT) - 1;
    return {NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL | NPUSHMEM_CAP_REMOTE,
            all_atomics, all_atomics, std::move(route).value()};
}

Status NetworkTransport::connect(const npushmem_peer& peer) {
    const Lock guard(lock_);
    Peer* const known = peer_at(peer.pe);
    if (known == nullptr || peer.pe == my_pe_)
        return {Code::argument, fmt::format("cannot connect PE {} to PE {}", my_pe_, peer.pe)};
    const auto address = decode_address({static_cast<const std::byte*>(peer.address), peer.address_bytes});
    if (!address.ok()) return address.status();
    if (!known->added) {
        if (Status added = wire_->add_peer(peer.pe, address.value().wire); !added.ok())
            return added.within(fmt::format("cannot reach {} over {}", name_of_peer(peer.pe), wire_->traits().name));
        known->added = true;
    }
    auto own = wire_->address();
    if (!own.ok()) return own.status();
    MessageHeader hello = message<MessageHeader>(MessageKind::hello);
    Bytes bytes(sizeof hello);
    std::memcpy(bytes.data(), &hello, sizeof hello);
    bytes.insert(bytes.end(), own.value().begin(), own.value().end());
    send_or_queue({peer.pe}, bytes);
    return {};
}

Result<RegisteredMemory> NetworkTransport::register_memory(const npushmem_memory& memory) {
    const Lock guard(lock_);
    if (memory.base == nullptr || memory.bytes == 0)
        return Status{Code::argument, "cannot register memory: the address is null or the size is 0"};
    auto made = wire_->register_memory(memory.base, memory.bytes);
    if (!made.ok())
        return made.status().within(
            fmt::format("cannot register {} bytes at {} with {}", memory.bytes, memory.base, wire_->traits().name));
    auto* const base = static_cast<std::byte*>(memory.base);
    const std::uint64_t region = regions_.insert({base, memory.bytes, made.value().number});
    Bytes handle = encode(
        NetworkHandle{region, reinterpret_cast<std::uintptr_t>(base), memory.bytes, std::move(made.value().key)});
    if (handle.size() <= NPUSHMEM_HANDLE_MAX) return RegisteredMemory{region, std::move(handle)};
    wire_->deregister_memory(made.value().number);
    regions_.erase(region);
    return Status{Code::unsupported, fmt::format("a memory handle of {} has {} bytes, the maximum is {}",
                                                 wire_->traits().name, handle.size(), NPUSHMEM_HANDLE_MAX)};
}

Code NetworkTransport::deregister_memory(std::uint64_t region) {
    const Lock guard(lock_);
    const RegionTable::Region* const found = regions_.find(region);
    if (found == nullptr) return Code::argument;
    wire_->deregister_memory(found->wire_number);
    regions_.erase(region);
    return Code::ok;
}

Result<std::uint64_t> NetworkTransport::import_memory(int pe, std::span<const std::byte> bytes) {
    const Lock guard(lock_);
    const auto handle = decode_handle(bytes);
    if (!handle.ok()) return handle.status();
    const Peer* const peer = peer_at(pe);
    if (peer == nullptr || !peer->added)
        return Status{Code::state, fmt::format("cannot use memory of PE {} before it is connected", pe)};
    auto key = wire_->import_key(pe, handle.value().key);
    if (!key.ok()) return key.status().within(fmt::format("cannot use the memory of {}", name_of_peer(pe)));
    return remotes_.insert({pe, handle.value().region, handle.value().base, handle.value().bytes, key.value()});
}

Code NetworkTransport::release_memory(std::uint64_t remote) {
    const Lock guard(lock_);
    const auto removed = remotes_.remove(remote);
    if (!removed) return Code::argument;
    wire_->release_key(removed->key);
    return Code::ok;
}

Result<std::uint64_t> NetworkTransport::create_queue() {
    const Lock guard(lock_);
    auto made = std::make_unique<OutgoingQueue>();
    made->number = static_cast<std::uint32_t>(++last_queue_);
    queues_.emplace(last_queue_, std::move(made));
    return last_queue_;
}

// Also abandons operations on lost lanes. The wire may never report operations to a lost peer.
bool NetworkTransport::wire_holds(const OutgoingQueue& queue) {
    bool held = false;
    operations_.for_each([&](const Operation& operation) {
        const Peer& peer = peers_[static_cast<std::size_t>(operation.lane_id.pe)];
        held = held || (operation.held_by_wire && operation.queue == queue.number && peer.failed == Code::ok);
    });
    return held;
}

// The pool takes back the operations that the wire still holds when the wire reports them.
void NetworkTransport::abandon(const OutgoingQueue& queue) {
    operations_.for_each([&](Operation& operation) {
        if (operation.flow == nullptr || operation.flow->queue != &queue) return;
        if (operation.held_by_wire) lane(operation.flow->lane_id).must_close = true;
        operation.flow = nullptr;
        operation.deferred_signal.reset();
        if (!operation.held_by_wire) operations_.release(operation);
    });
}

Code NetworkTransport::destroy_queue(std::uint64_t number) {
    Lock guard(lock_);
    const auto found = queues_.find(number);
    if (found == queues_.end()) return Code::argument;
    // Without a peer timeout, the default lets the job end.
    constexpr std::chrono::milliseconds otherwise{30'000};
    const bool unlimited = settings_.peer_timeout == std::chrono::milliseconds::zero();
    const auto deadline = std::chrono::steady_clock::now() + (unlimited ? otherwise : settings_.peer_timeout);
    while (wire_holds(*found->second) && std::chrono::steady_clock::now() < deadline) {
        if (drive()) continue;
        guard.unlock();  // lets the thread and callers of other queues proceed
        std::this_thread::yield();
        guard.lock();
    }
    abandon(*found->second);
    for (const auto& [pe, flow] : found->second->flows) release_lane(flow->lane_id);
    queues_.erase(found);
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
