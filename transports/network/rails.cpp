// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/rails.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "core/base/liveness.hpp"

namespace npushmem::network {

std::vector<RailLanes::Lane>& RailLanes::lanes(int pe) {
    const auto index = static_cast<std::size_t>(pe);
    if (index >= lanes_.size()) lanes_.resize(index + 1);
    return lanes_[index];
}

RailLanes::Lane& RailLanes::lane(LaneId lane_id) {
    auto& of_peer = lanes(lane_id.pe);
    if (lane_id.lane >= of_peer.size()) of_peer.resize(lane_id.lane + 1);
    return of_peer[lane_id.lane];
}

// Skips rails on which the peer does not answer, except the first.
Code RailLanes::choose_rail(LaneId lane_id, std::size_t& rail) {
    Lane& of = lane(lane_id);
    if (of.loss) return Code::again;
    if (of.rail == no_rail) {
        const std::vector<PortPair>& paired = connections_.pairs(lane_id.pe);
        const std::size_t first = connections_.first(lane_id.pe);
        const std::size_t pairs = std::max<std::size_t>(paired.size(), 1);
        for (std::size_t i = 0; i < pairs && of.rail == no_rail; ++i) {
            const std::size_t turn = (lane_id.lane + i) % pairs;
            const std::size_t next = turn == 0 ? first : paired[turn].mine;
            const Readiness found = next == first                            ? Readiness::ready
                                    : connections_.is_lost(lane_id.pe, next) ? Readiness::unreachable
                                                                             : rails_.at(next).readiness({lane_id.pe});
            if (found == Readiness::connecting) return Code::again;
            if (found == Readiness::ready) of.rail = next;
        }
    }
    rail = of.rail;
    return Code::ok;
}

std::vector<LaneId> RailLanes::lanes_on(int pe, std::size_t rail) {
    std::vector<LaneId> out;
    for (std::uint32_t i = 0; i < lanes(pe).size(); ++i)
        if (lanes(pe)[i].rail == rail) out.push_back({pe, i});
    return out;
}

void RailLanes::begin_striped(LaneId lane_id, bool reads) {
    ++lane(lane_id).striped_transfers;
    if (!reads) ++lane(lane_id).striped_writes;
}

void RailLanes::end_striped(LaneId lane_id, bool reads) {
    --lane(lane_id).striped_transfers;
    if (!reads) --lane(lane_id).striped_writes;
}

bool RailLanes::in_order(LaneId lane_id) const {
    const auto pe = static_cast<std::size_t>(lane_id.pe);
    if (pe >= lanes_.size() || lane_id.lane >= lanes_[pe].size()) return true;
    return lanes_[pe][lane_id.lane].striped_writes == 0;
}

void RailLanes::record_loss(LaneId lane_id, Code code, const std::string& why) {
    Lane& of = lane(lane_id);
    if (!of.loss) of.loss = Loss{code, why};
}

void RailLanes::queue_loss(LaneId lane_id) {
    Lane& of = lane(lane_id);
    if (!of.loss || of.striped_transfers > 0) return;
    lost_.emplace_back(lane_id, *std::exchange(of.loss, std::nullopt));
}

// Also fails the operations of such a lane that are in flight over its own rail: the loss has been reported to their
// callers, so nothing may be written to their memory any more.
bool RailLanes::report_losses(WireListener& listener) {
    const auto lost = std::exchange(lost_, {});
    for (const auto& [lane_id, loss] : lost) {
        const std::size_t own = rail(lane_id);
        if (own != no_rail && !connections_.is_lost(lane_id.pe, own)) rails_.at(own).close(lane_id);
        listener.lost(lane_id, loss.code, loss.why);
    }
    return !lost.empty();
}

void RailLanes::forget(int pe) {
    for (Lane& each : lanes(pe)) each.loss.reset();
}

void RailLanes::close(LaneId lane_id) {
    lane(lane_id).loss.reset();
    const std::size_t own = std::exchange(lane(lane_id).rail, no_rail);
    if (own != no_rail) rails_.at(own).close(lane_id);
}

namespace {

Result<std::vector<Port>> ports_of(const PeerPorts& peer, const Wire& reader) {
    if (peer.addresses.empty() || peer.addresses.size() % peer.bytes_of_one != 0)
        return Status{Code::protocol, fmt::format("PE {} sent {} bytes, which are not addresses of ports: each has {}",
                                                  peer.pe, peer.addresses.size(), peer.bytes_of_one)};
    std::vector<Port> out;
    for (std::size_t i = 0; i < peer.count(); ++i) {
        auto port = reader.port_of(peer.address(i));
        if (!port.ok()) return port.status();
        out.push_back(std::move(port).value());
    }
    return out;
}

std::vector<RailId> rails_of(const std::vector<Port>& ports) {
    std::vector<RailId> out(ports.size());
    std::ranges::transform(ports, out.begin(), &Port::rail);
    return out;
}

}  // namespace

Result<std::vector<PortPair>> pair_ports(int my_pe, std::span<const Wire* const> mine, const PeerPorts& theirs) {
    const auto others = ports_of(theirs, *mine.front());
    if (!others.ok()) return others.status();
    std::vector<Port> own;
    for (const Wire* wire : mine) own.push_back(wire->port());
    std::vector<PortPair> out;
    for (const auto& [i, j] : pair_rails(my_pe, rails_of(own), theirs.pe, rails_of(others.value()))) {
        const Port& other = others.value()[j];
        out.push_back(
            {i, j, fmt::format("{} -> {}, {}", own[i].name, other.name, pairing_reason(own[i].rail, other.rail))});
    }
    return out;
}

WireTraits Rails::combined_traits() const {
    WireTraits out = at(0).traits();
    for (std::size_t i = 1; i < rails_.size(); ++i) {
        const WireTraits& more = at(i).traits();
        out.name += " and " + more.name;
        out.inject_bytes = std::min(out.inject_bytes, more.inject_bytes);
        out.message_bytes = std::min(out.message_bytes, more.message_bytes);
        out.write_as_message_bytes = std::min(out.write_as_message_bytes, more.write_as_message_bytes);
        out.latency_ns = std::max(out.latency_ns, more.latency_ns);
        const bool known = out.bytes_per_second != 0 && more.bytes_per_second != 0;
        out.bytes_per_second = known ? out.bytes_per_second + more.bytes_per_second : 0;
        out.atomic_32 &= more.atomic_32;
        out.atomic_64 &= more.atomic_64;
        out.signals &= more.signals;
        out.arrives_in_progress = out.arrives_in_progress && more.arrives_in_progress;
        out.writes_silently = out.writes_silently || more.writes_silently;
    }
    return out;
}

Status Rails::open() {
    std::vector<int> descriptors;
    std::size_t length = 0;
    for (const Rail& each : rails_) {
        const auto address = each.wire->address();
        if (!address.ok()) return address.status();
        length = address.value().size();
        descriptors.push_back(each.wire->descriptor());
    }
    if (std::find(descriptors.begin(), descriptors.end(), -1) == descriptors.end()) {
        auto made = CombinedDescriptor::of(descriptors);
        if (!made.ok()) return made.status();
        descriptor_ = std::move(made).value();
    }
    address_bytes_ = length;
    return {};
}

Result<Bytes> Rails::address() const {
    Bytes out;
    for (const Rail& each : rails_) {
        auto address = each.wire->address();
        if (!address.ok()) return address;
        out.insert(out.end(), address.value().begin(), address.value().end());
    }
    return out;
}

std::string Rails::with_name(std::size_t index, const std::string& why) const {
    return fmt::format("{} (over {})", why, at(index).traits().name);
}

RailConnections::Peer& RailConnections::peer(int pe) {
    const auto index = static_cast<std::size_t>(pe);
    if (index >= peers_.size()) peers_.resize(index + 1);
    return peers_[index];
}

std::size_t RailConnections::first(int pe) const {
    const auto index = static_cast<std::size_t>(pe);
    return pe < 0 || index >= peers_.size() || peers_[index].pairs.empty() ? 0 : peers_[index].pairs.front().mine;
}

Result<std::vector<PortPair>> RailConnections::pairs_with(const PeerPorts& peer) const {
    std::vector<const Wire*> mine;
    for (std::size_t i = 0; i < rails_.count(); ++i) mine.push_back(&rails_.at(i));
    return pair_ports(my_pe_, mine, peer);
}

Result<std::string> RailConnections::route_to(int pe, std::span<const std::byte> address) const {
    const auto pairs = pairs_with({pe, address, rails_.address_bytes()});
    if (!pairs.ok()) return pairs.status();
    std::string out;
    for (const PortPair& each : pairs.value()) out += (out.empty() ? "" : "; ") + each.text;
    return out;
}

Status RailConnections::add_peer(int pe, std::span<const std::byte> address) {
    Peer& known = peer(pe);
    if (!known.pairs.empty()) return {};
    const PeerPorts ports{pe, address, rails_.address_bytes()};
    auto pairs = pairs_with(ports);
    if (!pairs.ok()) return pairs.status();
    for (const PortPair& each : pairs.value())
        if (Status s = rails_.at(each.mine).add_peer(pe, ports.address(each.theirs)); !s.ok()) return s;
    known.lost.assign(rails_.count(), false);
    known.ports = ports.count();
    known.pairs = std::move(pairs).value();
    return {};
}

bool RailConnections::lose(int pe, std::size_t rail) {
    std::vector<bool>& lost = peer(pe).lost;
    if (rail >= lost.size() || lost[rail]) return false;
    lost[rail] = true;
    rails_.at(rail).forget(pe);
    return true;
}

Code RailConnections::translate_failure(std::size_t rail, int pe, Code code) {
    last_error_ = rails_.with_name(rail, rails_.at(rail).last_error());
    if (rail == first(pe) || !ends_a_peer(code)) return code;
    losses_.push_back({pe, rail, last_error_});
    return Code::system;
}

Result<WireMemory> RailMemory::register_memory(void* base, std::uint64_t bytes) {
    WireMemory out;
    std::vector<std::uint64_t> numbers;
    for (std::size_t rail = 0; rail < rails_.count(); ++rail) {
        auto made = rails_.at(rail).register_memory(base, bytes);
        if (!made.ok()) {
            for (std::size_t i = 0; i < numbers.size(); ++i) rails_.at(i).deregister_memory(numbers[i]);
            return made;
        }
        numbers.push_back(made.value().number);
        out.key.insert(out.key.end(), made.value().key.begin(), made.value().key.end());
    }
    out.number = ++last_number_;
    numbers_.emplace(out.number, std::move(numbers));
    return out;
}

void RailMemory::deregister_memory(std::uint64_t number) {
    const auto found = numbers_.find(number);
    if (found == numbers_.end()) return;
    for (std::size_t i = 0; i < rails_.count(); ++i) rails_.at(i).deregister_memory(found->second[i]);
    numbers_.erase(found);
}

Result<std::uint64_t> RailMemory::import_key(int pe, std::span<const std::byte> key) {
    const std::vector<PortPair>& pairs = connections_.pairs(pe);
    const std::size_t ports = connections_.ports(pe);
    if (pairs.empty() || key.size() % ports != 0)
        return Status{Code::protocol,
                      fmt::format("{} bytes do not describe memory of a peer with {} ports", key.size(), ports)};
    const std::size_t length = key.size() / ports;
    RailKeys out(rails_.count(), 0);
    for (const PortPair& each : pairs) {
        auto made = rails_.at(each.mine).import_key(pe, key.subspan(each.theirs * length, length));
        if (!made.ok()) {
            release(out);
            return made;
        }
        out[each.mine] = made.value();
    }
    keys_.emplace(++last_key_, std::move(out));
    return last_key_;
}

void RailMemory::release_key(std::uint64_t key) {
    const auto found = keys_.find(key);
    if (found == keys_.end()) return;
    release(found->second);
    keys_.erase(found);
}

void RailMemory::release(const RailKeys& keys) {
    for (std::size_t i = 0; i < keys.size(); ++i)
        if (keys[i] != 0) rails_.at(i).release_key(keys[i]);
}

}  // namespace npushmem::network
