// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/verbs_wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "npushmem/plugin/local_atomic.hpp"
#include "transports/verbs/verbs_settings.hpp"
#include "transports/verbs/work_request.hpp"

namespace npushmem::verbs {
namespace {

using network::RemoteAddress;
using network::WireContext;

// The part of one port in the concatenated data of a peer's ports; empty when the data is too short.
std::span<const std::byte> of_port(std::span<const std::byte> bytes, std::size_t port, std::size_t length) {
    if (bytes.size() % length != 0 || bytes.size() / length <= port) return {};
    return bytes.subspan(port * length, length);
}

RailId rail_of(const PortAddress& port_address) {
    return {port_address.rail, port_address.rail_given != 0, {port_address.gid, port_address.subnet_bits}};
}

std::uint64_t random_number() {
    std::random_device source;
    return static_cast<std::uint64_t>(source()) << 32 | source();
}

}  // namespace

VerbsWire::VerbsWire(Library library, const VerbsSettings& settings, const LocalPe& local_pe, PortSelection ports,
                     Clock now)
    : library_(std::move(library)),
      settings_(settings),
      local_pe_(local_pe),
      now_(std::move(now)),
      ports_(std::move(ports)),
      nonce_(random_number()) {
    traits_.name = "verbs";
    traits_.delivery = network::Delivery::in_order_on_completion;
    traits_.message_bytes = MessageSender::max_bytes;
}

Result<std::unique_ptr<VerbsWire>> VerbsWire::open(Library library, const VerbsSettings& settings,
                                                   const LocalPe& local_pe, Clock now) {
    auto ports = PortSelection::find(*library, settings, local_pe.local_index);
    if (!ports.ok()) return ports.status();
    return std::unique_ptr<VerbsWire>(
        new VerbsWire(std::move(library), settings, local_pe, std::move(ports).value(), std::move(now)));
}

Status VerbsWire::use_port(std::size_t index) {
    if (interface_ && index < ports_.all().size())
        return {Code::state, fmt::format("port {} is open already", interface_->port->name())};
    return ports_.choose(index);
}

Status VerbsWire::ensure_open() {
    if (interface_) return {};
    Status s = open_interface(ports_.chosen());
    if (!s.ok()) interface_.reset();
    return s;
}

Status VerbsWire::check_usable() {
    Status first;
    for (const auto& port : ports_.all()) {
        if (port.state != NPUSHMEM_PORT_ACTIVE) continue;
        Status s = open_interface(port);
        interface_.reset();
        if (s.ok()) return s;
        if (first.ok()) first = std::move(s);
    }
    return first;
}

Status VerbsWire::open_interface(const npushmem_device& which) {
    auto port = OpenedPort::open(library_, which, settings_);
    if (!port.ok()) return port.status();
    const std::string name = port.value()->name();
    auto resources = PortResources::create(std::move(port).value(), watch_, caches_);
    Status s = resources.status();
    if (s.ok()) {
        const ConnectionManager::Identity self{local_pe_.pe, static_cast<std::size_t>(std::max(local_pe_.npes, 1)),
                                               make_address(resources.value())};
        interface_.emplace(std::move(resources).value(), self, now_, last_error_);
        s = find_traits();
    }
    if (s.ok()) s = interface_->open_descriptor();
    if (!s.ok()) return s.within(fmt::format("cannot use RDMA port {}", name));
    return {};
}

// Creates and destroys a queue pair to find the device's limits, and to fail early.
Status VerbsWire::find_traits() {
    OpenedPort& port = *interface_->port;
    const auto probe = Connection::make(port, interface_->receives->get(), {{local_pe_.pe}});
    if (!probe.ok()) return probe.status();
    traits_.name = "verbs on " + port.name();
    const char* const kind = !port.ethernet()                              ? "InfiniBand"
                             : port.gid().gid_type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                                                           : "RoCE v2";
    traits_.latency_ns = network::rdma_latency_ns;
    traits_.bytes_per_second = ports_.chosen().bits_per_second / 8;
    traits_.inject_bytes = probe.value()->pair().inline_bytes();
    if (traits_.inject_bytes >= sizeof(std::uint64_t)) traits_.signals = 1U << NPUSHMEM_SIGNAL_SET;
    const bool coherent = port.device().atomic_cap == IBV_ATOMIC_GLOB;
    const bool able = port.device().atomic_cap != IBV_ATOMIC_NONE;
    const bool native = settings_.atomics == NativeAtomics::always        ? able
                        : settings_.atomics == NativeAtomics::if_coherent ? coherent
                                                                          : false;
    traits_.protocol = fmt::format("verbs RC, {}{}", kind, native ? ", native atomics" : "");
    if (native)
        traits_.atomic_64 = 1U << NPUSHMEM_ATOMIC_FETCH | 1U << NPUSHMEM_ATOMIC_ADD | 1U << NPUSHMEM_ATOMIC_FETCH_ADD |
                            1U << NPUSHMEM_ATOMIC_COMPARE_SWAP;
    return {};
}

PortAddress VerbsWire::make_address(const PortResources& resources) const {
    const OpenedPort& port = *resources.port;
    PortAddress out;
    out.lid = port.port().lid;
    std::memcpy(out.gid.data(), port.gid().gid.raw, out.gid.size());
    out.handshake_qp = resources.handshake->number();
    out.mtu = static_cast<std::uint8_t>(port.mtu());
    out.max_rd_atomic = port.max_rd_atomic();
    out.rail = static_cast<std::uint8_t>(ports_.rail().number);
    out.rail_given = ports_.rail().given ? 1 : 0;
    out.subnet_bits = static_cast<std::uint8_t>(subnet_bits(port.gid().gid, port.ethernet(), local_pe_.subnets));
    out.nonce = nonce_;
    return out;
}

Result<Bytes> VerbsWire::address() {
    if (Status opened = ensure_open(); !opened.ok()) return opened;
    return bytes_from(interface_->manager.own_address());
}

network::Port VerbsWire::port() const { return {rail_of(interface_->manager.own_address()), name_of(ports_.chosen())}; }

Result<network::Port> VerbsWire::port_of(std::span<const std::byte> address) const {
    const auto port_address = port_address_from(address);
    if (!port_address)
        return Status{Code::protocol, fmt::format("{} bytes are not the address of an RDMA port", address.size())};
    ibv_gid gid{};
    std::memcpy(gid.raw, port_address->gid.data(), port_address->gid.size());
    return network::Port{rail_of(*port_address), short_text_of(gid)};
}

Result<network::PortPair> VerbsWire::pair_with(const network::PeerPorts& peer) const {
    const network::Wire* const self = this;
    auto pairs = network::pair_ports(local_pe_.pe, std::span(&self, 1), peer);
    if (!pairs.ok()) return pairs.status();
    return std::move(pairs.value().front());
}

Result<std::string> VerbsWire::route_to(int pe, std::span<const std::byte> address) {
    if (Status opened = ensure_open(); !opened.ok()) return opened;
    const auto pair = pair_with({pe, address, sizeof(PortAddress)});
    if (!pair.ok()) return pair.status();
    return fmt::format("{}: {}", traits_.name, pair.value().text);
}

Status VerbsWire::add_peer(int pe, std::span<const std::byte> address) {
    if (Status opened = ensure_open(); !opened.ok()) return opened;
    const network::PeerPorts ports{pe, address, sizeof(PortAddress)};
    const auto pair = pair_with(ports);
    if (!pair.ok()) return pair.status();
    PeerTable::Peer& known = interface_->manager.peers().at(pe);
    known.port = pair.value().theirs;
    if (!known.port_address) known.port_address = port_address_from(ports.address(known.port));
    return {};
}

Result<network::WireMemory> VerbsWire::register_memory(void* base, std::uint64_t bytes) {
    if (Status opened = ensure_open(); !opened.ok()) return opened;
    network::WireMemory out;
    out.number = interface_->memory.add(base, bytes);
    out.key = bytes_from(RegionInfo{out.number, bytes, interface_->memory.chunk_bytes()});
    return out;
}

Result<std::uint64_t> VerbsWire::import_key(int pe, std::span<const std::byte> bytes) {
    const auto info = region_info_from(of_port(bytes, interface_->manager.peers().at(pe).port, sizeof(RegionInfo)));
    if (!info) return Status{Code::protocol, fmt::format("{} bytes do not describe memory of a peer", bytes.size())};
    return interface_->keys.import(pe, *info);
}

Code VerbsWire::transfer(const Transfers::Operation& operation) {
    Connection* connection = nullptr;
    const Code code = interface_->manager.connection_to(operation.place.lane_id, connection);
    return code == Code::ok ? interface_->transfers.start(*connection, operation) : code;
}

Code VerbsWire::try_inline_write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) {
    Connection* const connection = interface_->manager.peers().open_connection(to.lane_id);
    if (connection == nullptr || bytes > connection->pair().inline_bytes() || interface_->poster.room(*connection) == 0)
        return Code::again;
    const std::uint32_t rkey = interface_->keys.at(to.key).key_of(to.offset, bytes);
    if (rkey == 0) return Code::again;
    WorkChain chain;
    chain.write({from, static_cast<std::uint32_t>(bytes), 0}, {to.base + to.offset, rkey}, true);
    return interface_->poster.post(*connection, chain, {CompletionAction::Kind::context, &context});
}

Code VerbsWire::write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) {
    if (const Code code = try_inline_write(to, from, bytes, context); code != Code::again) return code;
    // A write does not change its source.
    return transfer({to, const_cast<void*>(from), bytes, false, nullptr, 0, context});
}

Code VerbsWire::read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) {
    return transfer({from, to, bytes, true, nullptr, 0, context});
}

Code VerbsWire::write_signal(const RemoteAddress& to, const void* from, std::uint64_t bytes, const RemoteAddress& at,
                             std::uint64_t signal, WireContext& context) {
    return transfer({to, const_cast<void*>(from), bytes, false, &at, signal, context});
}

Code VerbsWire::atomic(const RemoteAddress& at, const npushmem_atomic& op, WireContext& context) {
    Interface& parts = *interface_;
    Connection* connection = parts.manager.peers().open_connection(at.lane_id);
    if (connection == nullptr)
        if (const Code code = parts.manager.connection_to(at.lane_id, connection); code != Code::ok) return code;
    if (parts.poster.room(*connection) == 0) return Code::again;
    RemoteWord word_there{at.base + at.offset, parts.keys.at(at.key).key_of(at.offset, op.width)};
    if (word_there.rkey == 0) {
        const Prepared prepared = parts.keys.prepare(*connection, at, op.width, context);
        if (prepared != Prepared::yes) return prepared == Prepared::failed ? Code::ok : Code::again;
        word_there = parts.keys.word_at(at);
    }
    std::byte* const word = parts.atomics.take(context, fetches(op.operation) ? op.result : nullptr, op.width);
    if (word == nullptr) return Code::again;
    const LocalSegment old = parts.atomics.segment(word);
    WorkChain chain;
    if (op.operation == NPUSHMEM_ATOMIC_FETCH)
        chain.read(word_there, old);
    else if (op.operation == NPUSHMEM_ATOMIC_COMPARE_SWAP)
        chain.compare_swap(word_there, op.compare, op.operand, old);
    else
        chain.fetch_add(word_there, op.operand, old);
    const Code posted = parts.poster.post(*connection, chain, {CompletionAction::Kind::word, word});
    if (posted != Code::ok) parts.atomics.release(word);
    return posted;
}

Code VerbsWire::send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    if (head.size() + rest.size() > MessageSender::max_bytes) return Code::argument;
    Connection* connection = nullptr;
    if (const Code code = interface_->manager.connection_to(lane_id, connection); code != Code::ok) return code;
    return interface_->messages.send(*connection, head, rest);
}

void VerbsWire::forget(int pe) {
    if (interface_) interface_->manager.forget(pe);
}

void VerbsWire::close(network::LaneId lane_id) {
    if (interface_) interface_->manager.close(lane_id);
}

}  // namespace npushmem::verbs
