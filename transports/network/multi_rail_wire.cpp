// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/multi_rail_wire.hpp"

#include <utility>

#include "core/base/liveness.hpp"

namespace npushmem::network {

// Listens to one rail and reports to the transport what its events mean for the peer.
class MultiRailWire::RailListener final : public WireListener {
public:
    RailListener(MultiRailWire& wire, std::size_t rail, WireListener& listener)
        : wire_(wire), rail_(rail), listener_(listener) {}

    void completed(WireContext& context, Code code, const std::string& why) override {
        const bool of_stripe = context.owner == WireContext::Owner::wire;
        const int pe = of_stripe ? StripedTransfers::pe_of(context) : context.pe;
        const bool peer_lives = ends_a_peer(code) && rail_ != wire_.connections_.first(pe);
        const Code seen = peer_lives ? Code::system : code;
        const std::string text = seen == Code::ok ? std::string() : wire_.rails_.with_name(rail_, why);
        if (of_stripe) return wire_.striped_.completed(listener_, context, seen, text);
        listener_.completed(context, seen, text);
    }
    void arrived(std::span<const std::byte> message) override { listener_.arrived(message); }
    void lost(LaneId lane_id, Code code, const std::string& why) override {
        if (rail_ != wire_.connections_.first(lane_id.pe) && (lane_id.lane == 0 || ends_a_peer(code)))
            return wire_.lose_rail({lane_id.pe, rail_, wire_.rails_.with_name(rail_, why)});
        if (lane_id.lane > 0 && !ends_a_peer(code))
            return wire_.lose_lane(lane_id, code, wire_.rails_.with_name(rail_, why));
        listener_.lost(lane_id, code, wire_.rails_.with_name(rail_, why));
    }
    void closed(int pe) override {
        if (rail_ == wire_.connections_.first(pe)) return listener_.closed(pe);
        wire_.lose_rail({pe, rail_, wire_.rails_.with_name(rail_, "the peer has closed it")});
    }
    void active(int pe) override { listener_.active(pe); }

private:
    MultiRailWire& wire_;
    std::size_t rail_;
    WireListener& listener_;
};

MultiRailWire::MultiRailWire(int my_pe, std::vector<Rail> rails, std::uint64_t stripe_bytes)
    : striped_(rails_, connections_, memory_, lanes_, stripe_bytes),
      rails_(std::move(rails)),
      connections_(my_pe, rails_),
      memory_(rails_, connections_),
      lanes_(rails_, connections_) {
    traits_ = rails_.combined_traits();
}

Status MultiRailWire::open() {
    if (rails_.address_bytes() > 0) return {};
    if (Status opened = rails_.open(); !opened.ok()) return opened;
    traits_ = rails_.combined_traits();
    return {};
}

Result<Bytes> MultiRailWire::address() {
    if (Status opened = open(); !opened.ok()) return opened;
    return rails_.address();
}

Result<std::string> MultiRailWire::route_to(int pe, std::span<const std::byte> address) {
    if (Status opened = open(); !opened.ok()) return opened;
    return connections_.route_to(pe, address);
}

Status MultiRailWire::add_peer(int pe, std::span<const std::byte> address) {
    if (Status opened = open(); !opened.ok()) return opened;
    return connections_.add_peer(pe, address);
}

// The caller treats a failure as the loss of the lane, so it is not returned before the lane's striped transfers end.
Code MultiRailWire::translate_code(std::size_t index, LaneId lane_id, Code code) {
    if (code == Code::ok || code == Code::again) return code;
    const Code failure = connections_.translate_failure(index, lane_id.pe, code);
    if (lane_id.lane == 0 || ends_a_peer(failure) || !lanes_.has_striped(lane_id)) return failure;
    striped_.lose_lane(lane_id, failure, connections_.last_error());
    return Code::again;
}

Code MultiRailWire::write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = lanes_.choose_rail(to.lane_id, own); code != Code::ok) return code;
    auto* const local = static_cast<std::byte*>(const_cast<void*>(from));  // a write does not change its source
    if (const auto ranges = striped_.ranges(to, own, bytes); ranges.size() > 1)
        return translate_code(own, to.lane_id,
                              striped_.post(ranges, {.context = &context, .place = to, .local = local}));
    context.pe = to.lane_id.pe;
    return translate_code(own, to.lane_id,
                          rails_.at(own).write(memory_.on(own, to, to.lane_id.lane), from, bytes, context));
}

Code MultiRailWire::read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = lanes_.choose_rail(from.lane_id, own); code != Code::ok) return code;
    if (const auto ranges = striped_.ranges(from, own, bytes); ranges.size() > 1) {
        auto* const local = static_cast<std::byte*>(to);
        return translate_code(
            own, from.lane_id,
            striped_.post(ranges, {.context = &context, .place = from, .local = local, .reads = true}));
    }
    context.pe = from.lane_id.pe;
    return translate_code(own, from.lane_id,
                          rails_.at(own).read(memory_.on(own, from, from.lane_id.lane), to, bytes, context));
}

Code MultiRailWire::write_signal(const RemoteAddress& to, const void* from, std::uint64_t bytes,
                                 const RemoteAddress& at, std::uint64_t signal, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = lanes_.choose_rail(to.lane_id, own); code != Code::ok) return code;
    if (const auto ranges = striped_.ranges(to, own, bytes); ranges.size() > 1) {
        auto* const local = static_cast<std::byte*>(const_cast<void*>(from));
        const RemoteAddress signal_at = memory_.on(own, at, to.lane_id.lane);
        const StripedTransfers::Request request{
            .context = &context, .place = to, .local = local, .signal_at = signal_at, .signal = signal};
        return translate_code(own, to.lane_id, striped_.post(ranges, request));
    }
    const std::uint32_t over = to.lane_id.lane;
    context.pe = to.lane_id.pe;
    return translate_code(own, to.lane_id,
                          rails_.at(own).write_signal(memory_.on(own, to, over), from, bytes, memory_.on(own, at, over),
                                                      signal, context));
}

Code MultiRailWire::atomic(const RemoteAddress& at, const npushmem_atomic& op, WireContext& context) {
    std::size_t own = 0;
    if (const Code code = lanes_.choose_rail(at.lane_id, own); code != Code::ok) return code;
    context.pe = at.lane_id.pe;
    return translate_code(own, at.lane_id, rails_.at(own).atomic(memory_.on(own, at, at.lane_id.lane), op, context));
}

Code MultiRailWire::send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    std::size_t own = 0;
    if (const Code code = lanes_.choose_rail(lane_id, own); code != Code::ok) return code;
    return translate_code(own, lane_id, rails_.at(own).send(lane_id, head, rest));
}

bool MultiRailWire::has_unsent_messages() const {
    for (std::size_t i = 0; i < rails_.count(); ++i)
        if (rails_.at(i).has_unsent_messages()) return true;
    return false;
}

Readiness MultiRailWire::readiness(LaneId lane_id) {
    std::size_t own = 0;
    return lanes_.choose_rail(lane_id, own) == Code::ok ? rails_.at(own).readiness(lane_id) : Readiness::connecting;
}

void MultiRailWire::forget(int pe) {
    striped_.abandon(pe, "the peer is no longer used");
    lanes_.forget(pe);
    for (std::size_t i = 0; i < rails_.count(); ++i) rails_.at(i).forget(pe);
}

void MultiRailWire::start_probe(int pe) {
    for (std::size_t i = 0; i < rails_.count(); ++i) rails_.at(i).start_probe(pe);
}

bool MultiRailWire::end_probe(int pe) {
    bool refused = false;
    for (std::size_t i = 0; i < rails_.count(); ++i) refused = rails_.at(i).end_probe(pe) || refused;
    return refused;
}

void MultiRailWire::close(LaneId lane_id) {
    striped_.abandon(lane_id, "the context has been closed");
    lanes_.close(lane_id);
}

void MultiRailWire::lose_rail(const RailConnections::Loss& loss) {
    if (!connections_.lose(loss.pe, loss.rail)) return;
    for (const LaneId lane_id : lanes_.lanes_on(loss.pe, loss.rail)) lose_lane(lane_id, Code::system, loss.why);
}

void MultiRailWire::lose_lane(LaneId lane_id, Code code, const std::string& why) {
    striped_.lose_lane(lane_id, code, why);
    lanes_.queue_loss(lane_id);
}

bool MultiRailWire::progress(WireListener& listener) {
    const auto losses = connections_.take_losses();
    for (const RailConnections::Loss& loss : losses) lose_rail(loss);
    bool happened = striped_.finish_unposted(listener) || !losses.empty();
    for (std::size_t i = 0; i < rails_.count(); ++i) {
        RailListener rail_listener(*this, i, listener);
        happened = rails_.at(i).progress(rail_listener) || happened;
    }
    if (lanes_.has_queued_losses()) happened = lanes_.report_losses(listener) || happened;
    if (striped_.has_waiting()) happened = striped_.post_waiting() || happened;
    return happened;
}

// A signal follows the stripes of its data without a call of the program.
bool MultiRailWire::prepare_to_wait(WakeEvents what) {
    if (striped_.has_signal()) what = WakeEvents::arrivals_and_completions;
    // Prepares all rails, whatever each returns: each wakes the thread for the requested events.
    bool idle = striped_.is_idle() && !connections_.has_losses() && !lanes_.has_queued_losses();
    if (idle) rails_.rest();
    for (std::size_t i = 0; i < rails_.count(); ++i) idle = rails_.at(i).prepare_to_wait(what) && idle;
    return idle;
}

}  // namespace npushmem::network
