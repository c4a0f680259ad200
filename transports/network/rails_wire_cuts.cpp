// Operations that go over several rails at once.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/lost_peer.hpp"
#include "transports/network/rails_wire.hpp"

namespace npushmem::network {
namespace {

// Parts begin at such addresses of the target.
constexpr std::uint64_t alignment = 64;

}  // namespace

// One for each rail that is ready, the own one among them; nothing of what is not cut.
std::vector<RailsWire::Share> RailsWire::shares_of(const RemotePlace& place, std::size_t own, std::uint64_t bytes) {
    std::vector<Share> out;
    const Peer& with = peer(place.way.pe);
    if (stripe_bytes_ == 0 || bytes < stripe_bytes_ || with.pairs.size() < 2 || !waiting_.empty()) return out;
    constexpr std::uint64_t gigabit = 1'000'000'000;
    const auto weight = [this](std::size_t i) {
        return std::max<std::uint64_t>(rails_[i].bits_per_second / gigabit, 1);
    };
    std::uint64_t all = 0;
    for (const PortPair& pair : with.pairs) {
        if (pair.mine != own && !is_ready(place.way.pe, pair.mine)) continue;
        all += weight(pair.mine);
        out.push_back({pair.mine, 0, 0});
    }
    const std::uint64_t at = place.base + place.offset;
    std::uint64_t before = 0;
    std::uint64_t begin = 0;
    for (Share& each : out) {
        before += weight(each.rail);
        const std::uint64_t cut_at = bytes / all * before + bytes % all * before / all;
        const std::uint64_t end = (at + cut_at) / alignment * alignment;
        each.begin = begin;
        each.end = before == all ? bytes : std::max(begin, end > at ? end - at : 0);
        begin = each.end;
    }
    const bool some_are_empty = std::any_of(out.begin(), out.end(), [](const Share& i) { return i.begin == i.end; });
    return some_are_empty ? std::vector<Share>{} : out;
}

RailsWire::Part& RailsWire::new_part(Cut& of, const Share& share, const RemotePlace& place, std::byte* local) {
    if (free_parts_.empty()) free_parts_.push_back(&parts_.emplace_back());
    Part& out = *free_parts_.back();
    free_parts_.pop_back();
    out.owner = WireContext::Owner::wire;
    out.of = &of;
    out.rail = share.rail;
    const bool over_own = lane(of.way).rail == share.rail;
    out.there = on(share.rail, place, over_own ? of.way.lane : 0);
    out.there.offset += share.begin;
    out.here = local + share.begin;
    out.bytes = share.end - share.begin;
    ++of.left;
    return out;
}

Code RailsWire::cut(const std::vector<Share>& shares, const RemotePlace& place, std::byte* local, Cut what) {
    if (free_cuts_.empty()) free_cuts_.push_back(&cuts_.emplace_back());
    Cut& made = *free_cuts_.back();
    made = std::move(what);
    made.way = place.way;
    const std::size_t own = lane(place.way).rail;
    const auto first =
        std::find_if(shares.begin(), shares.end(), [own](const Share& each) { return each.rail == own; });
    Part& own_part = new_part(made, *first, place, local);
    // Only what has no room at all may be refused.
    if (const Code code = post(own_part); code != Code::ok) {
        free_parts_.push_back(&own_part);
        made = {};
        return seen(own, place.way, code);
    }
    free_cuts_.pop_back();
    ++lane(place.way).cuts;
    if (!made.reads) ++lane(place.way).cut_writes;
    for (const Share& each : shares)
        if (each.rail != own) post_or_wait(new_part(made, each, place, local));
    return Code::ok;
}

Code RailsWire::post(Part& part) {
    Wire& over = rail(part.rail);
    return part.of->reads ? over.read(part.there, part.here, part.bytes, part)
                          : over.write(part.there, part.here, part.bytes, part);
}

void RailsWire::post_or_wait(Part& part) {
    if (part.of->code != Code::ok) {
        over_.push_back({&part, part.of->code, part.of->why});
        return;
    }
    const Code posted = post(part);
    if (posted == Code::ok) return;
    if (posted == Code::again) {
        waiting_.push_back(&part);
        descriptor_.wake();
        return;
    }
    part.of->broken = true;
    const Code code = meant(part.rail, part.of->way.pe, posted);
    over_.push_back({&part, code, why_});
}

// True: something has found room.
bool RailsWire::post_waiting() {
    const auto waiting = std::exchange(waiting_, {});
    for (Part* part : waiting) post_or_wait(*part);
    return waiting_.size() < waiting.size();
}

bool RailsWire::end_parts(WireListener& listener) {
    const auto over = std::exchange(over_, {});
    for (const Over& each : over) part_ended(listener, *each.part, each.code, each.why);
    return !over.empty();
}

void RailsWire::part_ended(WireListener& listener, Part& part, Code code, const std::string& why) {
    Cut& of = *part.of;
    if (code != Code::ok && !of.abandoned) of.broken |= has_lost_connection(part);
    free_parts_.push_back(&part);
    if (code != Code::ok && (of.code == Code::ok || (ends_a_peer(code) && !ends_a_peer(of.code)))) {
        of.code = code;
        of.why = why;
    }
    if (--of.left > 0) return;
    if (of.signal_at && of.code == Code::ok) return send_signal(of);
    end_cut(listener, of);
}

// A wire that breaks tells that of its connection before it tells of what was under way.
bool RailsWire::has_lost_connection(const Part& part) {
    return peer(part.of->way.pe).lost[part.rail] || rail(part.rail).readiness(part.there.way) != Readiness::ready;
}

void RailsWire::end_cut(WireListener& listener, Cut& of) {
    --lane(of.way).cuts;
    if (!of.reads) --lane(of.way).cut_writes;
    const Cut ended = std::exchange(of, {});
    free_cuts_.push_back(&of);
    listener.completed(*ended.context, ended.code, ended.why);
    // What is posted behind a fence would arrive without it. One wire goes on behind what it could not post, and is
    // lost with what it could.
    const bool takes_its_way = ended.broken && !ended.reads && !ended.abandoned;
    if (takes_its_way && ended.way.lane == 0) return listener.lost(ended.way, ended.code, ended.why);
    if (takes_its_way) note_lane_loss(ended.way, ended.code, ended.why);
    end_lane_loss(ended.way);
}

// All data has arrived.
void RailsWire::send_signal(Cut& of) {
    if (free_parts_.empty()) free_parts_.push_back(&parts_.emplace_back());
    Part& part = *free_parts_.back();
    free_parts_.pop_back();
    part.of = &of;
    part.rail = lane(of.way).rail;
    part.there = *std::exchange(of.signal_at, std::nullopt);
    part.here = reinterpret_cast<std::byte*>(&of.signal);
    part.bytes = sizeof of.signal;
    part.owner = WireContext::Owner::wire;
    ++of.left;
    post_or_wait(part);
}

// What is under way there comes to its end by itself; nothing of these begins any more.
void RailsWire::fail_cuts(Way way, const std::string& why) {
    for (Cut& each : cuts_) {
        if (each.context == nullptr || each.way != way || each.code != Code::ok) continue;
        each.code = Code::system;
        each.why = why;
    }
}

void RailsWire::abandon_cuts(Way way, bool of_all_lanes, const char* why) {
    for (Cut& each : cuts_) {
        if (each.context == nullptr || each.way.pe != way.pe || (!of_all_lanes && each.way != way)) continue;
        each.abandoned = true;
        fail_cuts(each.way, why);
    }
}

}  // namespace npushmem::network
