#include "transports/network/multi_rail_wire.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/liveness.hpp"

namespace npushmem::network {
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

// Set-up, and operations over one rail. Striped transfers are in multi_rail_wire_stripes.cpp.

// Listens to one rail and reports to the transport what its events mean for the peer.
class MultiRailWire::RailListener final : public WireListener {
public:
    RailListener(MultiRailWire& wire, std::size_t rail, WireListener& listener)
        : wire_(wire), rail_(rail), listener_(listener) {}

    void completed(WireContext& context, Code code, const std::string& why) override {
        const bool of_stripe = context.owner == WireContext::Owner::wire;
        const int pe = of_stripe ? static_cast<Stripe&>(context).of->lane_id.pe : context.pe;
        const bool peer_lives = ends_a_peer(code) && rail_ != wire_.first_rail(pe);
        const Code seen = peer_lives ? Code::system : code;
        const std::string text = seen == Code::ok ? std::string() : wire_.with_rail_name(rail_, why);
        if (of_stripe) return wire_.stripe_completed(listener_, static_cast<Stripe&>(context), seen, text);
        listener_.completed(context, seen, text);
    }
    void arrived(std::span<const std::byte> message) override { listener_.arrived(message); }
    void lost(LaneId lane_id, Code code, const std::string& why) override {
        if (rail_ != wire_.first_rail(lane_id.pe) && (lane_id.lane == 0 || ends_a_peer(code)))
            return wire_.lose_rail({lane_id.pe, rail_, wire_.with_rail_name(rail_, why)});
        if (lane_id.lane > 0 && !ends_a_peer(code))
            return wire_.lose_lane(lane_id, code, wire_.with_rail_name(rail_, why));
        listener_.lost(lane_id, code, wire_.with_rail_name(rail_, why));
    }

private:
    MultiRailWire& wire_;
    std::size_t rail_;
    WireListener& listener_;
};

MultiRailWire::MultiRailWire(int my_pe, std::vector<Rail> rails, std::uint64_t stripe_bytes)
    : my_pe_(my_pe), stripe_bytes_(stripe_bytes), rails_(std::move(rails)) {
    combine_traits();
}

void MultiRailWire::combine_traits() {
    traits_ = rail(0).traits();
    for (std::size_t i = 1; i < rails_.size(); ++i) {
        const WireTraits& more = rail(i).traits();
        traits_.name += " and " + more.name;
        traits_.inject_bytes = std::min(traits_.inject_bytes, more.inject_bytes);
        traits_.message_bytes = std::min(traits_.message_bytes, more.message_bytes);
        traits_.write_as_message_bytes = std::min(traits_.write_as_message_bytes, more.write_as_message_bytes);
        traits_.atomic_32 &= more.atomic_32;
        traits_.atomic_64 &= more.atomic_64;
        traits_.signals &= more.signals;
    }
}

Status MultiRailWire::open() {
    if (address_bytes_ > 0) return {};
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
    combine_traits();
    address_bytes_ = length;
    return {};
}

Result<Bytes> MultiRailWire::address() {
    if (Status opened = open(); !opened.ok()) return opened;
    Bytes out;
    for (const Rail& each : rails_) {
        auto address = each.wire->address();
        if (!address.ok()) return address;
        out.insert(out.end(), address.value().begin(), address.value().end());
    }
    return out;
}

MultiRailWire::Peer& MultiRailWire::peer(int pe) {
    const auto index = static_cast<std::size_t>(pe);
    if (index >= peers_.size()) peers_.resize(index + 1);
    return peers_[index];
}

MultiRailWire::Lane& MultiRailWire::lane(LaneId lane_id) {
    auto& lanes = peer(lane_id.pe).lanes;
    if (lane_id.lane >= lanes.size()) lanes.resize(lane_id.lane + 1);
    return lanes[lane_id.lane];
}

std::size_t MultiRailWire::first_rail(int pe) const {
    const auto index = static_cast<std::size_t>(pe);
    return pe < 0 || index >= peers_.size() || peers_[index].pairs.empty() ? 0 : peers_[index].pairs.front().mine;
}

Result<std::vector<PortPair>> MultiRailWire::pairs_with(const PeerPorts& peer) {
    std::vector<const Wire*> mine;
    for (const Rail& each : rails_) mine.push_back(each.wire.get());
    return pair_ports(my_pe_, mine, peer);
}

Result<std::string> MultiRailWire::route_to(int pe, std::span<const std::byte> address) {
    if (Status opened = open(); !opened.ok()) return opened;
    const auto pairs = pairs_with({pe, address, address_bytes_});
    if (!pairs.ok()) return pairs.status();
    std::string out;
    for (const PortPair& each : pairs.value()) out += (out.empty() ? "" : "; ") + each.text;
    return out;
}

Status MultiRailWire::add_peer(int pe, std::span<const std::byte> address) {
    if (Status opened = open(); !opened.ok()) return opened;
    Peer& known = peer(pe);
    if (!known.pairs.empty()) return {};
    const PeerPorts ports{pe, address, address_bytes_};
    auto pairs = pairs_with(ports);
    if (!pairs.ok()) return pairs.status();
    for (const PortPair& each : pairs.value())
        if (Status s = rail(each.mine).add_peer(pe, ports.address(each.theirs)); !s.ok()) return s;
    known.lost.assign(rails_.size(), false);
    known.ports = ports.count();
    known.pairs = std::move(pairs).value();
    return {};
}

Result<WireMemory> MultiRailWire::register_memory(void* base, std::uint64_t bytes) {
    WireMemory out;
    std::vector<std::uint64_t> numbers;
    for (const Rail& each : rails_) {
        auto made = each.wire->register_memory(base, bytes);
        if (!made.ok()) {
            for (std::size_t i = 0; i < numbers.size(); ++i) rail(i).deregister_memory(numbers[i]);
            return made;
        }
        numbers.push_back(made.value().number);
        out.key.insert(out.key.end(), made.value().key.begin(), made.value().key.end());
    }
    out.number = ++last_number_;
    numbers_.emplace(out.number, std::move(numbers));
    return out;
}

void MultiRailWire::deregister_memory(std::uint64_t number) {
    const auto found = numbers_.find(number);
    if (found == numbers_.end()) return;
    for (std::size_t i = 0; i < rails_.size(); ++i) rail(i).deregister_memory(found->second[i]);
    numbers_.erase(found);
}

Result<std::uint64_t> MultiRailWire::import_key(int pe, std::span<const std::byte> key) {
    const Peer& from = peer(pe);
    if (from.pairs.empty() || key.size() % from.ports != 0)
        return Status{Code::protocol,
                      fmt::format("{} bytes do not describe memory of a peer with {} ports", key.size(), from.ports)};
    const std::size_t length = key.size() / from.ports;
    RailKeys out{std::vector<std::uint64_t>(rails_.size(), 0)};
    for (const PortPair& each : from.pairs) {
        auto made = rail(each.mine).import_key(pe, key.subspan(each.theirs * length, length));
        if (!made.ok()) {
            release(out);
            return made;
        }
        out.of[each.mine] = made.value();
    }
    keys_.emplace(++last_key_, std::move(out));
    return last_key_;
}

void MultiRailWire::release_key(std::uint64_t key) {
    const auto found = keys_.find(key);
    if (found == keys_.end()) return;
    release(found->second);
    keys_.erase(found);
}

void MultiRailWire::release(const RailKeys& keys) {
    for (std::size_t i = 0; i < keys.of.size(); ++i)
        if (keys.of[i] != 0) rail(i).release_key(keys.of[i]);
}

std::string MultiRailWire::with_rail_name(std::size_t index, const std::string& why) const {
    return fmt::format("{} (over {})", why, rail(index).traits().name);
}

bool MultiRailWire::is_ready(int pe, std::size_t index) {
    return !peer(pe).lost[index] && rail(index).readiness({pe}) == Readiness::ready;
}

// Assigns rails round robin. Skips rails on which the peer does not answer, except the first.
Code MultiRailWire::choose_rail(LaneId lane_id, std::size_t& out) {
    Lane& of = lane(lane_id);
    if (of.loss) return Code::again;
    if (of.rail == no_rail) {
        const Peer& with = peer(lane_id.pe);
        const std::size_t first = first_rail(lane_id.pe);
        const std::size_t pairs = std::max<std::size_t>(with.pairs.size(), 1);
        for (std::size_t i = 0; i < pairs && of.rail == no_rail; ++i) {
            const std::size_t turn = (lane_id.lane + i) % pairs;
            const std::size_t next = turn == 0 ? first : with.pairs[turn].mine;
            const Readiness found = next == first     ? Readiness::ready
                                    : with.lost[next] ? Readiness::unreachable
                                                      : rail(next).readiness({lane_id.pe});
            if (found == Readiness::connecting) return Code::again;
            if (found == Readiness::ready) of.rail = next;
        }
    }
    out = of.rail;
    return Code::ok;
}

RemoteAddress MultiRailWire::on(std::size_t index, const RemoteAddress& place, std::uint32_t lane) const {
    return {{place.lane_id.pe, lane}, keys_.at(place.key).of[index], place.base, place.offset};
}

Code MultiRailWire::translate_failure(std::size_t index, int pe, Code code) {
    last_error_ = with_rail_name(index, rail(index).last_error());
    if (index == first_rail(pe) || !ends_a_peer(code)) return code;
    record_rail_loss(pe, index, last_error_);
    return Code::system;
}

// The caller treats a failure as the loss of the lane, so it is not returned before the lane's striped transfers end.
Code MultiRailWire::translate_code(std::size_t index, LaneId lane_id, Code code) {
    if (code == Code::ok || code == Code::again) return code;
    const Code failure = translate_failure(index, lane_id.pe, code);
    if (lane_id.lane == 0 || ends_a_peer(failure) || lane(lane_id).striped_transfers == 0) return failure;
    record_lane_loss(lane_id, failure, last_error_);
    return Code::again;
}

Code MultiRailWire::write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = choose_rail(to.lane_id, own); code != Code::ok) return code;
    auto* const local = static_cast<std::byte*>(const_cast<void*>(from));  // a write does not change its source
    if (const auto ranges = stripe_ranges(to, own, bytes); ranges.size() > 1) {
        StripedTransfer made;
        made.context = &context;
        return post_striped(ranges, to, local, std::move(made));
    }
    context.pe = to.lane_id.pe;
    return translate_code(own, to.lane_id, rail(own).write(on(own, to, to.lane_id.lane), from, bytes, context));
}

Code MultiRailWire::read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = choose_rail(from.lane_id, own); code != Code::ok) return code;
    if (const auto ranges = stripe_ranges(from, own, bytes); ranges.size() > 1) {
        StripedTransfer made;
        made.context = &context;
        made.reads = true;
        return post_striped(ranges, from, static_cast<std::byte*>(to), std::move(made));
    }
    context.pe = from.lane_id.pe;
    return translate_code(own, from.lane_id, rail(own).read(on(own, from, from.lane_id.lane), to, bytes, context));
}

Code MultiRailWire::write_signal(const RemoteAddress& to, const void* from, std::uint64_t bytes,
                                 const RemoteAddress& at, std::uint64_t signal, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = choose_rail(to.lane_id, own); code != Code::ok) return code;
    if (const auto ranges = stripe_ranges(to, own, bytes); ranges.size() > 1) {
        StripedTransfer made;
        made.context = &context;
        made.signal_at = on(own, at, to.lane_id.lane);
        made.signal = signal;
        return post_striped(ranges, to, static_cast<std::byte*>(const_cast<void*>(from)), std::move(made));
    }
    const std::uint32_t over = to.lane_id.lane;
    context.pe = to.lane_id.pe;
    return translate_code(own, to.lane_id,
                          rail(own).write_signal(on(own, to, over), from, bytes, on(own, at, over), signal, context));
}

Code MultiRailWire::atomic(const RemoteAddress& at, const npushmem_atomic& op, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = choose_rail(at.lane_id, own); code != Code::ok) return code;
    context.pe = at.lane_id.pe;
    return translate_code(own, at.lane_id, rail(own).atomic(on(own, at, at.lane_id.lane), op, context));
}

Code MultiRailWire::send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    std::size_t own = 0;
    if (const Code code = choose_rail(lane_id, own); code != Code::ok) return code;
    return translate_code(own, lane_id, rail(own).send(lane_id, head, rest));
}

Readiness MultiRailWire::readiness(LaneId lane_id) {
    std::size_t own = 0;
    return choose_rail(lane_id, own) == Code::ok ? rail(own).readiness(lane_id) : Readiness::connecting;
}

bool MultiRailWire::in_order(LaneId lane_id) const {
    const auto pe = static_cast<std::size_t>(lane_id.pe);
    if (pe >= peers_.size() || lane_id.lane >= peers_[pe].lanes.size()) return true;
    return peers_[pe].lanes[lane_id.lane].striped_writes == 0;
}

void MultiRailWire::forget(int pe) {
    abandon_striped({pe}, true, "the peer is no longer used");
    for (Lane& each : peer(pe).lanes) each.loss.reset();
    for (const Rail& each : rails_) each.wire->forget(pe);
}

void MultiRailWire::close(LaneId lane_id) {
    abandon_striped(lane_id, false, "the context has been closed");
    lane(lane_id).loss.reset();
    const std::size_t own = std::exchange(lane(lane_id).rail, no_rail);
    if (own != no_rail) rail(own).close(lane_id);
}

void MultiRailWire::record_rail_loss(int pe, std::size_t index, const std::string& why) {
    losses_.push_back({pe, index, why});
}

void MultiRailWire::lose_rail(const RailLoss& loss) {
    Peer& with = peer(loss.pe);
    if (loss.rail >= with.lost.size() || with.lost[loss.rail]) return;
    with.lost[loss.rail] = true;
    rail(loss.rail).forget(loss.pe);
    for (std::uint32_t i = 0; i < peer(loss.pe).lanes.size(); ++i)
        if (peer(loss.pe).lanes[i].rail == loss.rail) lose_lane({loss.pe, i}, Code::system, loss.why);
}

void MultiRailWire::lose_lane(LaneId lane_id, Code code, const std::string& why) {
    record_lane_loss(lane_id, code, why);
    queue_lane_loss(lane_id);
}

void MultiRailWire::record_lane_loss(LaneId lane_id, Code code, const std::string& why) {
    Lane& of = lane(lane_id);
    if (!of.loss) of.loss = LaneLoss{code, why};
    fail_striped(lane_id, why);
}

void MultiRailWire::queue_lane_loss(LaneId lane_id) {
    Lane& of = lane(lane_id);
    if (!of.loss || of.striped_transfers > 0) return;
    lost_lanes_.emplace_back(lane_id, *std::exchange(of.loss, std::nullopt));
}

// Also fails the operations of such a lane that are in flight over its own rail: their callers have been told of the
// loss, so nothing may be written to their memory any more.
bool MultiRailWire::report_lost_lanes(WireListener& listener) {
    const auto lost = std::exchange(lost_lanes_, {});
    for (const auto& [lane_id, loss] : lost) {
        const std::size_t own = lane(lane_id).rail;
        const Peer& with = peer(lane_id.pe);
        const bool abandoned_rail = own < with.lost.size() && with.lost[own];
        if (own != no_rail && !abandoned_rail) rail(own).close(lane_id);
        listener.lost(lane_id, loss.code, loss.why);
    }
    return !lost.empty();
}

bool MultiRailWire::progress(WireListener& listener) {
    const auto losses = std::exchange(losses_, {});
    for (const RailLoss& loss : losses) lose_rail(loss);
    bool happened = finish_unposted(listener) || !losses.empty();
    for (std::size_t i = 0; i < rails_.size(); ++i) {
        RailListener rail_listener(*this, i, listener);
        happened = rail(i).progress(rail_listener) || happened;
    }
    if (!lost_lanes_.empty()) happened = report_lost_lanes(listener) || happened;
    if (!waiting_for_room_.empty()) happened = post_waiting() || happened;
    return happened;
}

// A signal follows the stripes of its data without a call of the program.
bool MultiRailWire::prepare_to_wait(WakeEvents what) {
    if (std::any_of(striped_.begin(), striped_.end(),
                    [](const StripedTransfer& each) { return each.signal_at.has_value(); }))
        what = WakeEvents::arrivals_and_completions;
    // Prepares all rails, whatever each returns: each wakes the thread for the requested events.
    bool idle = waiting_for_room_.empty() && unposted_.empty() && losses_.empty() && lost_lanes_.empty();
    if (idle) descriptor_.rest();
    for (const Rail& each : rails_) idle = each.wire->prepare_to_wait(what) && idle;
    return idle;
}

}  // namespace npushmem::network
