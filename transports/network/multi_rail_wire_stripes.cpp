// Striped transfers: operations over several rails.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/liveness.hpp"
#include "transports/network/multi_rail_wire.hpp"

namespace npushmem::network {
namespace {

// The alignment of stripes at the target.
constexpr std::uint64_t alignment = 64;

}  // namespace

// One range for each rail that is ready, including the lane's own; empty when the transfer is not split.
std::vector<MultiRailWire::StripeRange> MultiRailWire::stripe_ranges(const RemoteAddress& place, std::size_t own,
                                                                     std::uint64_t bytes) {
    std::vector<StripeRange> out;
    const Peer& with = peer(place.lane_id.pe);
    if (stripe_bytes_ == 0 || bytes < stripe_bytes_ || with.pairs.size() < 2 || !waiting_for_room_.empty()) return out;
    constexpr std::uint64_t gigabit = 1'000'000'000;
    const auto weight = [this](std::size_t i) {
        return std::max<std::uint64_t>(rails_[i].bits_per_second / gigabit, 1);
    };
    std::uint64_t all = 0;
    for (const PortPair& pair : with.pairs) {
        if (pair.mine != own && !is_ready(place.lane_id.pe, pair.mine)) continue;
        all += weight(pair.mine);
        out.push_back({pair.mine, 0, 0});
    }
    const std::uint64_t at = place.base + place.offset;
    std::uint64_t before = 0;
    std::uint64_t begin = 0;
    for (StripeRange& each : out) {
        before += weight(each.rail);
        const std::uint64_t split_at = bytes / all * before + bytes % all * before / all;
        const std::uint64_t end = (at + split_at) / alignment * alignment;
        each.begin = begin;
        each.end = before == all ? bytes : std::max(begin, end > at ? end - at : 0);
        begin = each.end;
    }
    const bool some_are_empty =
        std::any_of(out.begin(), out.end(), [](const StripeRange& i) { return i.begin == i.end; });
    return some_are_empty ? std::vector<StripeRange>{} : out;
}

MultiRailWire::Stripe& MultiRailWire::new_stripe(StripedTransfer& of, const StripeRange& range,
                                                 const RemoteAddress& place, std::byte* local) {
    if (free_stripes_.empty()) free_stripes_.push_back(&stripes_.emplace_back());
    Stripe& out = *free_stripes_.back();
    free_stripes_.pop_back();
    out.owner = WireContext::Owner::wire;
    out.of = &of;
    out.rail = range.rail;
    const bool over_own = lane(of.lane_id).rail == range.rail;
    out.there = on(range.rail, place, over_own ? of.lane_id.lane : 0);
    out.there.offset += range.begin;
    out.here = local + range.begin;
    out.bytes = range.end - range.begin;
    ++of.left;
    return out;
}

Code MultiRailWire::post_striped(const std::vector<StripeRange>& ranges, const RemoteAddress& place, std::byte* local,
                                 StripedTransfer what) {
    if (free_striped_.empty()) free_striped_.push_back(&striped_.emplace_back());
    StripedTransfer& made = *free_striped_.back();
    made = std::move(what);
    made.lane_id = place.lane_id;
    const std::size_t own = lane(place.lane_id).rail;
    const auto first =
        std::find_if(ranges.begin(), ranges.end(), [own](const StripeRange& each) { return each.rail == own; });
    Stripe& own_stripe = new_stripe(made, *first, place, local);
    // Only a transfer without any posted stripe may be rejected.
    if (const Code code = post(own_stripe); code != Code::ok) {
        free_stripes_.push_back(&own_stripe);
        made = {};
        return translate_code(own, place.lane_id, code);
    }
    free_striped_.pop_back();
    ++lane(place.lane_id).striped_transfers;
    if (!made.reads) ++lane(place.lane_id).striped_writes;
    for (const StripeRange& each : ranges)
        if (each.rail != own) post_or_wait(new_stripe(made, each, place, local));
    return Code::ok;
}

Code MultiRailWire::post(Stripe& stripe) {
    Wire& over = rail(stripe.rail);
    return stripe.of->reads ? over.read(stripe.there, stripe.here, stripe.bytes, stripe)
                            : over.write(stripe.there, stripe.here, stripe.bytes, stripe);
}

void MultiRailWire::post_or_wait(Stripe& stripe) {
    if (stripe.of->code != Code::ok) {
        unposted_.push_back({&stripe, stripe.of->code, stripe.of->why});
        return;
    }
    const Code posted = post(stripe);
    if (posted == Code::ok) return;
    if (posted == Code::again) {
        waiting_for_room_.push_back(&stripe);
        descriptor_.wake();
        return;
    }
    stripe.of->lost_connection = true;
    const Code code = translate_failure(stripe.rail, stripe.of->lane_id.pe, posted);
    unposted_.push_back({&stripe, code, last_error_});
}

// True when it posted a stripe.
bool MultiRailWire::post_waiting() {
    const auto waiting = std::exchange(waiting_for_room_, {});
    for (Stripe* stripe : waiting) post_or_wait(*stripe);
    return waiting_for_room_.size() < waiting.size();
}

bool MultiRailWire::finish_unposted(WireListener& listener) {
    const auto unposted = std::exchange(unposted_, {});
    for (const UnpostedStripe& each : unposted) stripe_completed(listener, *each.stripe, each.code, each.why);
    return !unposted.empty();
}

void MultiRailWire::stripe_completed(WireListener& listener, Stripe& stripe, Code code, const std::string& why) {
    StripedTransfer& of = *stripe.of;
    if (code != Code::ok && !of.abandoned) of.lost_connection |= has_lost_connection(stripe);
    free_stripes_.push_back(&stripe);
    if (code != Code::ok && (of.code == Code::ok || (ends_a_peer(code) && !ends_a_peer(of.code)))) {
        of.code = code;
        of.why = why;
    }
    if (--of.left > 0) return;
    if (of.signal_at && of.code == Code::ok) return send_signal(of);
    finish_striped(listener, of);
}

// A wire reports the loss of a connection before the failures of its operations.
bool MultiRailWire::has_lost_connection(const Stripe& stripe) {
    return peer(stripe.of->lane_id.pe).lost[stripe.rail] ||
           rail(stripe.rail).readiness(stripe.there.lane_id) != Readiness::ready;
}

void MultiRailWire::finish_striped(WireListener& listener, StripedTransfer& of) {
    --lane(of.lane_id).striped_transfers;
    if (!of.reads) --lane(of.lane_id).striped_writes;
    const StripedTransfer ended = std::exchange(of, {});
    free_striped_.push_back(&of);
    listener.completed(*ended.context, ended.code, ended.why);
    // An operation after a fence would arrive without this write. A single wire continues after an operation that it
    // could not post, and is lost with one that it has posted.
    const bool loses_its_lane = ended.lost_connection && !ended.reads && !ended.abandoned;
    if (loses_its_lane && ended.lane_id.lane == 0) return listener.lost(ended.lane_id, ended.code, ended.why);
    if (loses_its_lane) record_lane_loss(ended.lane_id, ended.code, ended.why);
    queue_lane_loss(ended.lane_id);
}

// All data has arrived.
void MultiRailWire::send_signal(StripedTransfer& of) {
    if (free_stripes_.empty()) free_stripes_.push_back(&stripes_.emplace_back());
    Stripe& stripe = *free_stripes_.back();
    free_stripes_.pop_back();
    stripe.of = &of;
    stripe.rail = lane(of.lane_id).rail;
    stripe.there = *std::exchange(of.signal_at, std::nullopt);
    stripe.here = reinterpret_cast<std::byte*>(&of.signal);
    stripe.bytes = sizeof of.signal;
    stripe.owner = WireContext::Owner::wire;
    ++of.left;
    post_or_wait(stripe);
}

// Operations in flight there end by themselves. The transfers start no further stripes.
void MultiRailWire::fail_striped(LaneId lane_id, const std::string& why) {
    for (StripedTransfer& each : striped_) {
        if (each.context == nullptr || each.lane_id != lane_id || each.code != Code::ok) continue;
        each.code = Code::system;
        each.why = why;
    }
}

void MultiRailWire::abandon_striped(LaneId lane_id, bool of_all_lanes, const char* why) {
    for (StripedTransfer& each : striped_) {
        if (each.context == nullptr || each.lane_id.pe != lane_id.pe || (!of_all_lanes && each.lane_id != lane_id))
            continue;
        each.abandoned = true;
        fail_striped(each.lane_id, why);
    }
}

}  // namespace npushmem::network
