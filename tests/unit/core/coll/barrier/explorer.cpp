// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/core/coll/barrier/explorer.hpp"

#include <algorithm>
#include <tuple>

namespace npushmem::barrier::testing {
namespace {

void append(std::string& out, std::uint64_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

}  // namespace

std::string ModelState::key() const {
    std::string out;
    for (const Member& member : members) {
        append(out, member.results.size());
        for (std::size_t i = member.call_begin; i < member.results.size(); ++i) append(out, member.results[i]);
    }
    for (const std::uint64_t slot : slots) append(out, slot);
    for (const InFlightSignal& flight : in_flight) {
        append(out, static_cast<std::uint64_t>(flight.from));
        append(out, static_cast<std::uint64_t>(flight.member * slots_per_member + flight.slot));
        append(out, flight.value);
    }
    return out;
}

template <class Operation>
Code ReplayFabric::once(std::uint64_t& result, Visibility seen, Operation&& operation) {
    ModelState::Member& me = state_->members[static_cast<std::size_t>(own_)];
    if (at_ < me.results.size()) {
        result = me.results[at_++];
        return Code::ok;
    }
    if (moved_ || !operation(result)) return Code::again;
    moved_ = true;
    early_ = seen == Visibility::to_nobody && me.entered >= entering_;
    me.entered = std::max(me.entered, entering_);
    me.results.push_back(result);
    ++at_;
    return Code::ok;
}

Code ReplayFabric::signal(int member, int slot, std::uint64_t value) {
    if (member == own_) return store_own(slot, value);
    std::uint64_t result = 0;
    const bool at_once = delivery_ == Delivery::coherent;
    return once(result, at_once ? Visibility::to_others : Visibility::to_nobody, [&](std::uint64_t&) {
        if (at_once) {
            state_->write(member, slot, value);
        } else {
            state_->in_flight.push_back({own_, member, slot, value});
        }
        return true;
    });
}

Code ReplayFabric::add(int member, int slot, std::uint64_t value, std::uint64_t& before) {
    return once(before, Visibility::to_others, [&](std::uint64_t& result) {
        result = state_->slot(member, slot);
        state_->slot(member, slot) += value;
        return true;
    });
}

Code ReplayFabric::wait(const AwaitedSlot& awaited, std::uint64_t value) {
    std::uint64_t result = 0;
    return once(result, Visibility::to_nobody,
                [&](std::uint64_t&) { return reached(state_->slot(awaited.member, awaited.slot), value); });
}

bool ReplayFabric::nothing_in_flight() const {
    return std::none_of(state_->in_flight.begin(), state_->in_flight.end(),
                        [&](const ModelState::InFlightSignal& flight) { return flight.from == own_; });
}

Code ReplayFabric::complete() {
    std::uint64_t result = 0;
    return once(result, Visibility::to_nobody, [&](std::uint64_t&) { return nothing_in_flight(); });
}

Code ReplayFabric::wait_equal(int slot, std::uint64_t value) { return poll_equal(own_, slot, value); }

Code ReplayFabric::poll_equal(int member, int slot, std::uint64_t value) {
    std::uint64_t result = 0;
    return once(result, Visibility::to_others, [&](std::uint64_t&) { return state_->slot(member, slot) == value; });
}

Code ReplayFabric::store_own(int slot, std::uint64_t value) {
    std::uint64_t result = 0;
    return once(result, Visibility::to_others, [&](std::uint64_t&) {
        state_->slot(own_, slot) = value;
        return true;
    });
}

ModelState Explorer::initial_state() const {
    ModelState state;
    state.members.resize(static_cast<std::size_t>(config_.n));
    state.slots_per_member = config_.slots;
    state.slots.assign(static_cast<std::size_t>(config_.n * config_.slots), config_.initial);
    return state;
}

BarrierCall Explorer::barrier_call(int member, int call) const {
    const NodeLayout* nodes = config_.nodes.empty() ? nullptr : &config_.nodes[static_cast<std::size_t>(member)];
    const std::uint64_t generation = config_.first_generation + static_cast<std::uint64_t>(call) - 1;
    return {config_.n, member, 0, generation, config_.radix, nodes};
}

// Moves `member` by one operation, if it can do one.
Explorer::Step Explorer::step(ModelState& state, int member) {
    ReplayFabric fabric(state, config_.delivery, member);
    fabric.let_poll_peers(config_.poll_peers);
    const auto done = [&] { return Step{fabric.moved(), fabric.early() && config_.monotonic}; };
    auto& me = state.members[static_cast<std::size_t>(member)];
    for (int call = 1; call <= config_.calls; ++call) {
        fabric.enter(call);
        if (config_.schedule(fabric, barrier_call(member, call)) != Code::ok) return done();
        if (me.left >= call) continue;
        me.left = call;
        me.call_begin = me.results.size();
    }
    me.finished = true;
    return done();
}

bool Explorer::may_land(const ModelState& state, std::size_t flight) const {
    if (config_.delivery == Delivery::unordered) return true;
    const auto& one = state.in_flight[flight];
    return std::none_of(
        state.in_flight.begin(), state.in_flight.begin() + static_cast<std::ptrdiff_t>(flight),
        [&](const ModelState::InFlightSignal& other) { return other.from == one.from && other.member == one.member; });
}

void Explorer::deliver_each(const ModelState& state, std::vector<ModelState>& out) const {
    for (std::size_t i = 0; i < state.in_flight.size(); ++i) {
        if (!may_land(state, i)) continue;
        ModelState next = state;
        const ModelState::InFlightSignal flight = next.in_flight[i];
        next.in_flight.erase(next.in_flight.begin() + static_cast<std::ptrdiff_t>(i));
        next.write(flight.member, flight.slot, flight.value);
        canonicalize(next);
        out.push_back(std::move(next));
    }
}

// Signals in flight form a set if unordered: a canonical order makes equal worlds compare equal.
void Explorer::canonicalize(ModelState& state) const {
    if (config_.delivery != Delivery::unordered) return;
    std::sort(state.in_flight.begin(), state.in_flight.end(), [](const auto& a, const auto& b) {
        return std::tie(a.member, a.slot, a.value, a.from) < std::tie(b.member, b.slot, b.value, b.from);
    });
}

std::vector<ModelState> Explorer::successors(const ModelState& state) {
    std::vector<ModelState> out;
    for (int member = 0; member < config_.n; ++member) {
        if (state.members[static_cast<std::size_t>(member)].finished) continue;
        ModelState next = state;
        const Step done = step(next, member);
        if (!done.moved) continue;
        canonicalize(next);
        if (done.early) return {std::move(next)};
        out.push_back(std::move(next));
    }
    deliver_each(state, out);
    return out;
}

void Explorer::check(const ModelState& state, bool stuck) {
    int max_left = 0;
    int min_entered = config_.calls;
    bool all_finished = true;
    for (const auto& member : state.members) {
        max_left = std::max(max_left, member.left);
        min_entered = std::min(min_entered, member.entered);
        all_finished = all_finished && member.finished;
    }
    if (max_left > min_entered) result_.fault = "left call " + std::to_string(max_left) + " too early";
    if (state.regressed && config_.monotonic) result_.fault = "a slot went back to an earlier value";
    if (stuck && !all_finished) result_.fault = "deadlock after call " + std::to_string(max_left);
}

Exploration Explorer::run() {
    std::vector<ModelState> open{initial_state()};
    std::unordered_set<std::string> seen{open.front().key()};
    while (!open.empty() && result_.fault.empty()) {
        const ModelState state = std::move(open.back());
        open.pop_back();
        auto next = successors(state);
        check(state, next.empty());
        for (ModelState& one : next) {
            if (seen.insert(one.key()).second) open.push_back(std::move(one));
        }
        if (seen.size() > config_.bound) {
            result_.complete = false;
            break;
        }
    }
    result_.states = seen.size();
    return result_;
}

}  // namespace npushmem::barrier::testing
