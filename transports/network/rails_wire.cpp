// Set-up, and what goes over one rail. What is cut is in rails_wire_cuts.cpp.
#include "transports/network/rails_wire.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/lost_peer.hpp"

namespace npushmem::network {

// Hears one rail, and tells what it means to the whole.
class RailsWire::Ear final : public WireListener {
public:
    Ear(RailsWire& wire, std::size_t rail, WireListener& listener) : wire_(wire), rail_(rail), listener_(listener) {}

    void completed(WireContext& context, Code code, const std::string& why) override {
        const bool of_a_part = context.owner == WireContext::Owner::wire;
        const int pe = of_a_part ? static_cast<Part&>(context).of->way.pe : context.pe;
        const bool peer_lives = ends_a_peer(code) && rail_ != wire_.first_rail(pe);
        const Code seen = peer_lives ? Code::system : code;
        const std::string text = seen == Code::ok ? std::string() : wire_.named(rail_, why);
        if (of_a_part) return wire_.part_ended(listener_, static_cast<Part&>(context), seen, text);
        listener_.completed(context, seen, text);
    }
    void arrived(std::span<const std::byte> message) override { listener_.arrived(message); }
    void lost(Way way, Code code, const std::string& why) override {
        if (rail_ != wire_.first_rail(way.pe) && (way.lane == 0 || ends_a_peer(code)))
            return wire_.lose_rail({way.pe, rail_, wire_.named(rail_, why)});
        if (way.lane > 0 && !ends_a_peer(code)) return wire_.lose_lane(way, code, wire_.named(rail_, why));
        listener_.lost(way, code, wire_.named(rail_, why));
    }

private:
    RailsWire& wire_;
    std::size_t rail_;
    WireListener& listener_;
};

RailsWire::RailsWire(int my_pe, std::vector<Rail> rails, std::uint64_t stripe_bytes)
    : my_pe_(my_pe), stripe_bytes_(stripe_bytes), rails_(std::move(rails)) {
    take_traits();
}

void RailsWire::take_traits() {
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

Status RailsWire::open() {
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
    take_traits();
    address_bytes_ = length;
    return {};
}

Result<Bytes> RailsWire::address() {
    if (Status opened = open(); !opened.ok()) return opened;
    Bytes out;
    for (const Rail& each : rails_) {
        auto address = each.wire->address();
        if (!address.ok()) return address;
        out.insert(out.end(), address.value().begin(), address.value().end());
    }
    return out;
}

RailsWire::Peer& RailsWire::peer(int pe) {
    const auto index = static_cast<std::size_t>(pe);
    if (index >= peers_.size()) peers_.resize(index + 1);
    return peers_[index];
}

RailsWire::Lane& RailsWire::lane(Way way) {
    auto& lanes = peer(way.pe).lanes;
    if (way.lane >= lanes.size()) lanes.resize(way.lane + 1);
    return lanes[way.lane];
}

std::size_t RailsWire::first_rail(int pe) const {
    const auto index = static_cast<std::size_t>(pe);
    return pe < 0 || index >= peers_.size() || peers_[index].pairs.empty() ? 0 : peers_[index].pairs.front().mine;
}

Result<std::vector<PortPair>> RailsWire::pairs_with(const PeerPorts& peer) {
    std::vector<const Wire*> mine;
    for (const Rail& each : rails_) mine.push_back(each.wire.get());
    return pair_ports(my_pe_, mine, peer);
}

Result<std::string> RailsWire::route_to(int pe, std::span<const std::byte> address) {
    if (Status opened = open(); !opened.ok()) return opened;
    const auto pairs = pairs_with({pe, address, address_bytes_});
    if (!pairs.ok()) return pairs.status();
    std::string out;
    for (const PortPair& each : pairs.value()) out += (out.empty() ? "" : "; ") + each.text;
    return out;
}

Status RailsWire::link(int pe, std::span<const std::byte> address) {
    if (Status opened = open(); !opened.ok()) return opened;
    Peer& known = peer(pe);
    if (!known.pairs.empty()) return {};
    const PeerPorts ports{pe, address, address_bytes_};
    auto pairs = pairs_with(ports);
    if (!pairs.ok()) return pairs.status();
    for (const PortPair& each : pairs.value())
        if (Status s = rail(each.mine).link(pe, ports.address(each.theirs)); !s.ok()) return s;
    known.lost.assign(rails_.size(), false);
    known.ports = ports.count();
    known.pairs = std::move(pairs).value();
    return {};
}

Result<WireMemory> RailsWire::register_memory(void* base, std::uint64_t bytes) {
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

void RailsWire::deregister_memory(std::uint64_t number) {
    const auto found = numbers_.find(number);
    if (found == numbers_.end()) return;
    for (std::size_t i = 0; i < rails_.size(); ++i) rail(i).deregister_memory(found->second[i]);
    numbers_.erase(found);
}

Result<std::uint64_t> RailsWire::import_key(int pe, std::span<const std::byte> key) {
    const Peer& from = peer(pe);
    if (from.pairs.empty() || key.size() % from.ports != 0)
        return Status{Code::protocol,
                      fmt::format("{} bytes that describe no memory of a peer with {} ports", key.size(), from.ports)};
    const std::size_t length = key.size() / from.ports;
    Keys out{std::vector<std::uint64_t>(rails_.size(), 0)};
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

void RailsWire::release_key(std::uint64_t key) {
    const auto found = keys_.find(key);
    if (found == keys_.end()) return;
    release(found->second);
    keys_.erase(found);
}

void RailsWire::release(const Keys& keys) {
    for (std::size_t i = 0; i < keys.of.size(); ++i)
        if (keys.of[i] != 0) rail(i).release_key(keys.of[i]);
}

std::string RailsWire::named(std::size_t index, const std::string& why) const {
    return fmt::format("{} (over {})", why, rail(index).traits().name);
}

bool RailsWire::is_ready(int pe, std::size_t index) {
    return !peer(pe).lost[index] && rail(index).readiness({pe}) == Readiness::ready;
}

// In turn; a rail that answers nothing is left out, but for the first.
Code RailsWire::choose_rail(Way way, std::size_t& out) {
    Lane& of = lane(way);
    if (of.loss) return Code::again;
    if (of.rail == not_chosen) {
        const Peer& with = peer(way.pe);
        const std::size_t first = first_rail(way.pe);
        const std::size_t pairs = std::max<std::size_t>(with.pairs.size(), 1);
        for (std::size_t i = 0; i < pairs && of.rail == not_chosen; ++i) {
            const std::size_t turn = (way.lane + i) % pairs;
            const std::size_t next = turn == 0 ? first : with.pairs[turn].mine;
            const Readiness found = next == first     ? Readiness::ready
                                    : with.lost[next] ? Readiness::no
                                                      : rail(next).readiness({way.pe});
            if (found == Readiness::soon) return Code::again;
            if (found == Readiness::ready) of.rail = next;
        }
    }
    out = of.rail;
    return Code::ok;
}

RemotePlace RailsWire::on(std::size_t index, const RemotePlace& place, std::uint32_t lane) const {
    return {{place.way.pe, lane}, keys_.at(place.key).of[index], place.base, place.offset};
}

Code RailsWire::meant(std::size_t index, int pe, Code code) {
    why_ = named(index, rail(index).why());
    if (index == first_rail(pe) || !ends_a_peer(code)) return code;
    note_loss(pe, index, why_);
    return Code::system;
}

// The caller takes a failure for the loss of the lane: not before its cuts are over.
Code RailsWire::seen(std::size_t index, Way way, Code code) {
    if (code == Code::ok || code == Code::again) return code;
    const Code failure = meant(index, way.pe, code);
    if (way.lane == 0 || ends_a_peer(failure) || lane(way).cuts == 0) return failure;
    note_lane_loss(way, failure, why_);
    return Code::again;
}

Code RailsWire::write(const RemotePlace& to, const void* from, std::uint64_t bytes, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = choose_rail(to.way, own); code != Code::ok) return code;
    auto* const local = static_cast<std::byte*>(const_cast<void*>(from));  // a write does not change its source
    if (const auto shares = shares_of(to, own, bytes); shares.size() > 1) {
        Cut made;
        made.context = &context;
        return cut(shares, to, local, std::move(made));
    }
    context.pe = to.way.pe;
    return seen(own, to.way, rail(own).write(on(own, to, to.way.lane), from, bytes, context));
}

Code RailsWire::read(const RemotePlace& from, void* to, std::uint64_t bytes, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = choose_rail(from.way, own); code != Code::ok) return code;
    if (const auto shares = shares_of(from, own, bytes); shares.size() > 1) {
        Cut made;
        made.context = &context;
        made.reads = true;
        return cut(shares, from, static_cast<std::byte*>(to), std::move(made));
    }
    context.pe = from.way.pe;
    return seen(own, from.way, rail(own).read(on(own, from, from.way.lane), to, bytes, context));
}

Code RailsWire::write_signal(const RemotePlace& to, const void* from, std::uint64_t bytes, const RemotePlace& at,
                             std::uint64_t signal, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = choose_rail(to.way, own); code != Code::ok) return code;
    if (const auto shares = shares_of(to, own, bytes); shares.size() > 1) {
        Cut made;
        made.context = &context;
        made.signal_at = on(own, at, to.way.lane);
        made.signal = signal;
        return cut(shares, to, static_cast<std::byte*>(const_cast<void*>(from)), std::move(made));
    }
    const std::uint32_t over = to.way.lane;
    context.pe = to.way.pe;
    return seen(own, to.way,
                rail(own).write_signal(on(own, to, over), from, bytes, on(own, at, over), signal, context));
}

Code RailsWire::atomic(const RemotePlace& at, const npushmem_atomic& op, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = choose_rail(at.way, own); code != Code::ok) return code;
    context.pe = at.way.pe;
    return seen(own, at.way, rail(own).atomic(on(own, at, at.way.lane), op, context));
}

Code RailsWire::send(Way way, std::span<const std::byte> head, std::span<const std::byte> rest) {
    std::size_t own = 0;
    if (const Code code = choose_rail(way, own); code != Code::ok) return code;
    return seen(own, way, rail(own).send(way, head, rest));
}

Readiness RailsWire::readiness(Way way) {
    std::size_t own = 0;
    return choose_rail(way, own) == Code::ok ? rail(own).readiness(way) : Readiness::soon;
}

bool RailsWire::in_order(Way way) const {
    const auto pe = static_cast<std::size_t>(way.pe);
    if (pe >= peers_.size() || way.lane >= peers_[pe].lanes.size()) return true;
    return peers_[pe].lanes[way.lane].cut_writes == 0;
}

void RailsWire::forget(int pe) {
    abandon_cuts({pe}, true, "the peer has been given up");
    for (Lane& each : peer(pe).lanes) each.loss.reset();
    for (const Rail& each : rails_) each.wire->forget(pe);
}

void RailsWire::close(Way way) {
    abandon_cuts(way, false, "the context has been closed");
    lane(way).loss.reset();
    const std::size_t own = std::exchange(lane(way).rail, not_chosen);
    if (own != not_chosen) rail(own).close(way);
}

void RailsWire::note_loss(int pe, std::size_t index, const std::string& why) { losses_.push_back({pe, index, why}); }

void RailsWire::lose_rail(const Loss& loss) {
    Peer& with = peer(loss.pe);
    if (loss.rail >= with.lost.size() || with.lost[loss.rail]) return;
    with.lost[loss.rail] = true;
    rail(loss.rail).forget(loss.pe);
    for (std::uint32_t i = 0; i < peer(loss.pe).lanes.size(); ++i)
        if (peer(loss.pe).lanes[i].rail == loss.rail) lose_lane({loss.pe, i}, Code::system, loss.why);
}

void RailsWire::lose_lane(Way way, Code code, const std::string& why) {
    note_lane_loss(way, code, why);
    end_lane_loss(way);
}

void RailsWire::note_lane_loss(Way way, Code code, const std::string& why) {
    Lane& of = lane(way);
    if (!of.loss) of.loss = LaneLoss{code, why};
    fail_cuts(way, why);
}

void RailsWire::end_lane_loss(Way way) {
    Lane& of = lane(way);
    if (!of.loss || of.cuts > 0) return;
    lost_lanes_.emplace_back(way, *std::exchange(of.loss, std::nullopt));
}

// What is under way of such a lane over its own rail fails as well: its callers are told so, and nothing may be written
// for them any more.
bool RailsWire::tell_lost_lanes(WireListener& listener) {
    const auto lost = std::exchange(lost_lanes_, {});
    for (const auto& [way, loss] : lost) {
        const std::size_t own = lane(way).rail;
        const Peer& with = peer(way.pe);
        const bool given_up = own < with.lost.size() && with.lost[own];
        if (own != not_chosen && !given_up) rail(own).close(way);
        listener.lost(way, loss.code, loss.why);
    }
    return !lost.empty();
}

bool RailsWire::progress(WireListener& listener) {
    const auto losses = std::exchange(losses_, {});
    for (const Loss& loss : losses) lose_rail(loss);
    bool happened = end_parts(listener) || !losses.empty();
    for (std::size_t i = 0; i < rails_.size(); ++i) {
        Ear ear(*this, i, listener);
        happened = rail(i).progress(ear) || happened;
    }
    if (!lost_lanes_.empty()) happened = tell_lost_lanes(listener) || happened;
    if (!waiting_.empty()) happened = post_waiting() || happened;
    return happened;
}

// A signal follows the parts of its data without being asked for.
bool RailsWire::prepare_to_wait(Awaited what) {
    if (std::any_of(cuts_.begin(), cuts_.end(), [](const Cut& each) { return each.signal_at.has_value(); }))
        what = Awaited::arrivals_and_completions;
    // All are asked, whatever they say: each wakes for what it has been asked for.
    bool idle = waiting_.empty() && over_.empty() && losses_.empty() && lost_lanes_.empty();
    if (idle) descriptor_.rest();
    for (const Rail& each : rails_) idle = each.wire->prepare_to_wait(what) && idle;
    return idle;
}

}  // namespace npushmem::network
