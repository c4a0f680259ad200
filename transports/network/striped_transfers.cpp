// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/striped_transfers.hpp"

#include <algorithm>
#include <utility>

#include "core/base/liveness.hpp"

namespace npushmem::network {
namespace {

// The alignment of stripes at the target.
constexpr std::uint64_t alignment = 64;

}  // namespace

std::vector<StripedTransfers::Range> StripedTransfers::ranges(const RemoteAddress& place, std::size_t own,
                                                              std::uint64_t bytes) {
    std::vector<Range> out;
    const std::vector<PortPair>& pairs = connections_.pairs(place.lane_id.pe);
    if (stripe_bytes_ == 0 || bytes < stripe_bytes_ || pairs.size() < 2 || !waiting_for_room_.empty()) return out;
    constexpr std::uint64_t gigabit = 1'000'000'000;
    const auto weight = [this](std::size_t i) {
        return std::max<std::uint64_t>(rails_.bits_per_second(i) / gigabit, 1);
    };
    std::uint64_t all = 0;
    for (const PortPair& pair : pairs) {
        if (pair.mine != own && !connections_.is_ready(place.lane_id.pe, pair.mine)) continue;
        all += weight(pair.mine);
        out.push_back({pair.mine, 0, 0});
    }
    const std::uint64_t at = place.base + place.offset;
    std::uint64_t before = 0;
    std::uint64_t begin = 0;
    for (Range& each : out) {
        before += weight(each.rail);
        const std::uint64_t split_at = bytes / all * before + bytes % all * before / all;
        const std::uint64_t end = (at + split_at) / alignment * alignment;
        each.begin = begin;
        each.end = before == all ? bytes : std::max(begin, end > at ? end - at : 0);
        begin = each.end;
    }
    const bool some_are_empty = std::any_of(out.begin(), out.end(), [](const Range& i) { return i.begin == i.end; });
    return some_are_empty ? std::vector<Range>{} : out;
}

StripedTransfers::Stripe& StripedTransfers::take_stripe(Transfer& of, std::size_t rail) {
    if (free_stripes_.empty()) free_stripes_.push_back(&stripes_.emplace_back());
    Stripe& out = *free_stripes_.back();
    free_stripes_.pop_back();
    out.owner = WireContext::Owner::wire;
    out.of = &of;
    out.rail = rail;
    ++of.left;
    return out;
}

StripedTransfers::Stripe& StripedTransfers::new_stripe(Transfer& of, const Range& range, const RemoteAddress& place,
                                                       std::byte* local) {
    Stripe& out = take_stripe(of, range.rail);
    const bool over_own = lanes_.rail(of.lane_id) == range.rail;
    out.there = memory_.on(range.rail, place, over_own ? of.lane_id.lane : 0);
    out.there.offset += range.begin;
    out.here = local + range.begin;
    out.bytes = range.end - range.begin;
    return out;
}

Code StripedTransfers::post(const std::vector<Range>& ranges, const Request& request) {
    if (free_transfers_.empty()) free_transfers_.push_back(&transfers_.emplace_back());
    Transfer& made = *free_transfers_.back();
    made = {};
    made.context = request.context;
    made.lane_id = request.place.lane_id;
    made.reads = request.reads;
    made.signal_at = request.signal_at;
    made.signal = request.signal;
    const std::size_t own = lanes_.rail(made.lane_id);
    const auto first =
        std::find_if(ranges.begin(), ranges.end(), [own](const Range& each) { return each.rail == own; });
    Stripe& own_stripe = new_stripe(made, *first, request.place, request.local);
    // Only a transfer without any posted stripe may be rejected.
    if (const Code code = post_on_wire(own_stripe); code != Code::ok) {
        free_stripes_.push_back(&own_stripe);
        made = {};
        return code;
    }
    free_transfers_.pop_back();
    lanes_.begin_striped(made.lane_id, made.reads);
    for (const Range& each : ranges)
        if (each.rail != own) post_or_wait(new_stripe(made, each, request.place, request.local));
    return Code::ok;
}

Code StripedTransfers::post_on_wire(Stripe& stripe) {
    Wire& over = rails_.at(stripe.rail);
    return stripe.of->reads ? over.read(stripe.there, stripe.here, stripe.bytes, stripe)
                            : over.write(stripe.there, stripe.here, stripe.bytes, stripe);
}

void StripedTransfers::post_or_wait(Stripe& stripe) {
    if (stripe.of->code != Code::ok) {
        unposted_.push_back({&stripe, stripe.of->code, stripe.of->why});
        return;
    }
    const Code posted = post_on_wire(stripe);
    if (posted == Code::ok) return;
    if (posted == Code::again) {
        waiting_for_room_.push_back(&stripe);
        rails_.wake();
        return;
    }
    stripe.of->lost_connection = true;
    const Code code = connections_.translate_failure(stripe.rail, stripe.of->lane_id.pe, posted);
    unposted_.push_back({&stripe, code, connections_.last_error()});
}

// True when it posted a stripe.
bool StripedTransfers::post_waiting() {
    const auto waiting = std::exchange(waiting_for_room_, {});
    for (Stripe* stripe : waiting) post_or_wait(*stripe);
    return waiting_for_room_.size() < waiting.size();
}

bool StripedTransfers::finish_unposted(WireListener& listener) {
    const auto unposted = std::exchange(unposted_, {});
    for (const Unposted& each : unposted) completed(listener, *each.stripe, each.code, each.why);
    return !unposted.empty();
}

void StripedTransfers::completed(WireListener& listener, WireContext& context, Code code, const std::string& why) {
    auto& stripe = static_cast<Stripe&>(context);
    Transfer& of = *stripe.of;
    if (code != Code::ok && !of.abandoned) of.lost_connection |= has_lost_connection(stripe);
    free_stripes_.push_back(&stripe);
    if (code != Code::ok && (of.code == Code::ok || (ends_a_peer(code) && !ends_a_peer(of.code)))) {
        of.code = code;
        of.why = why;
    }
    if (--of.left > 0) return;
    if (of.signal_at && of.code == Code::ok) return send_signal(of);
    finish(listener, of);
}

// A wire reports the loss of a connection before the failures of its operations.
bool StripedTransfers::has_lost_connection(const Stripe& stripe) {
    return connections_.is_lost(stripe.of->lane_id.pe, stripe.rail) ||
           rails_.at(stripe.rail).readiness(stripe.there.lane_id) != Readiness::ready;
}

void StripedTransfers::finish(WireListener& listener, Transfer& of) {
    lanes_.end_striped(of.lane_id, of.reads);
    const Transfer ended = std::exchange(of, {});
    free_transfers_.push_back(&of);
    listener.completed(*ended.context, ended.code, ended.why);
    // An operation after a fence would arrive without this write. A single wire continues after an operation that it
    // could not post, and is lost with one that it has posted.
    const bool loses_its_lane = ended.lost_connection && !ended.reads && !ended.abandoned;
    if (loses_its_lane && ended.lane_id.lane == 0) return listener.lost(ended.lane_id, ended.code, ended.why);
    if (loses_its_lane) lose_lane(ended.lane_id, ended.code, ended.why);
    lanes_.queue_loss(ended.lane_id);
}

// All data has arrived.
void StripedTransfers::send_signal(Transfer& of) {
    Stripe& stripe = take_stripe(of, lanes_.rail(of.lane_id));
    stripe.there = *std::exchange(of.signal_at, std::nullopt);
    stripe.here = reinterpret_cast<std::byte*>(&of.signal);
    stripe.bytes = sizeof of.signal;
    post_or_wait(stripe);
}

bool StripedTransfers::has_signal() const {
    return std::any_of(transfers_.begin(), transfers_.end(),
                       [](const Transfer& each) { return each.signal_at.has_value(); });
}

void StripedTransfers::lose_lane(LaneId lane_id, Code code, const std::string& why) {
    lanes_.record_loss(lane_id, code, why);
    fail(lane_id, why);
}

void StripedTransfers::fail(LaneId lane_id, const std::string& why) {
    for (Transfer& each : transfers_) {
        if (each.context == nullptr || each.lane_id != lane_id || each.code != Code::ok) continue;
        each.code = Code::system;
        each.why = why;
    }
}

void StripedTransfers::abandon(LaneId lane_id, const char* why) {
    for (Transfer& each : transfers_)
        if (each.context != nullptr && each.lane_id == lane_id) each.abandoned = true;
    fail(lane_id, why);
}

void StripedTransfers::abandon(int pe, const char* why) {
    for (const Transfer& each : transfers_)
        if (each.context != nullptr && each.lane_id.pe == pe) abandon(each.lane_id, why);
}

}  // namespace npushmem::network
