#include "tests/unit/core/coll/barrier/explorer.hpp"

#include <algorithm>
#include <tuple>

namespace npushmem::barrier::testing {
namespace {

void append(std::string& out, std::uint64_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

}  // namespace

std::string World::key() const {
    std::string out;
    for (const Member& member : members) {
        append(out, member.results.size());
        for (std::size_t i = member.call_begin; i < member.results.size(); ++i) append(out, member.results[i]);
    }
    for (const std::uint64_t slot : slots) append(out, slot);
    for (const Flight& flight : in_flight) {
        append(out, static_cast<std::uint64_t>(flight.from));
        append(out, static_cast<std::uint64_t>(flight.member * slots_per_member + flight.slot));
        append(out, flight.value);
    }
    return out;
}

template <class Operation>
Code ReplayFabric::once(std::uint64_t& result, Seen seen, Operation&& operation) {
    World::Member& me = world_->members[static_cast<std::size_t>(own_)];
    if (at_ < me.results.size()) {
        result = me.results[at_++];
        return Code::ok;
    }
    if (moved_ || !operation(result)) return Code::again;
    moved_ = true;
    early_ = seen == Seen::by_nobody && me.entered >= entering_;
    me.entered = std::max(me.entered, entering_);
    me.results.push_back(result);
    ++at_;
    return Code::ok;
}

Code ReplayFabric::signal(int member, int slot, std::uint64_t value) {
    if (member == own_) return store_own(slot, value);
    std::uint64_t result = 0;
    const bool at_once = delivery_ == Delivery::coherent;
    return once(result, at_once ? Seen::by_others : Seen::by_nobody, [&](std::uint64_t&) {
        if (at_once) {
            world_->write(member, slot, value);
        } else {
            world_->in_flight.push_back({own_, member, slot, value});
        }
        return true;
    });
}

Code ReplayFabric::add(int member, int slot, std::uint64_t value, std::uint64_t& before) {
    return once(before, Seen::by_others, [&](std::uint64_t& result) {
        result = world_->slot(member, slot);
        world_->slot(member, slot) += value;
        return true;
    });
}

Code ReplayFabric::wait(const Awaited& awaited, std::uint64_t value) {
    std::uint64_t result = 0;
    return once(result, Seen::by_nobody,
                [&](std::uint64_t&) { return reached(world_->slot(awaited.member, awaited.slot), value); });
}

bool ReplayFabric::nothing_in_flight() const {
    return std::none_of(world_->in_flight.begin(), world_->in_flight.end(),
                        [&](const World::Flight& flight) { return flight.from == own_; });
}

Code ReplayFabric::complete() {
    std::uint64_t result = 0;
    return once(result, Seen::by_nobody, [&](std::uint64_t&) { return nothing_in_flight(); });
}

Code ReplayFabric::wait_equal(int slot, std::uint64_t value) { return poll_equal(own_, slot, value); }

Code ReplayFabric::poll_equal(int member, int slot, std::uint64_t value) {
    std::uint64_t result = 0;
    return once(result, Seen::by_others, [&](std::uint64_t&) { return world_->slot(member, slot) == value; });
}

Code ReplayFabric::store_own(int slot, std::uint64_t value) {
    std::uint64_t result = 0;
    return once(result, Seen::by_others, [&](std::uint64_t&) {
        world_->slot(own_, slot) = value;
        return true;
    });
}

World Explorer::first_world() const {
    World world;
    world.members.resize(static_cast<std::size_t>(question_.n));
    world.slots_per_member = question_.slots;
    world.slots.assign(static_cast<std::size_t>(question_.n * question_.slots), question_.initial);
    return world;
}

Turn Explorer::turn_of(int member, int call) const {
    const Nodes* nodes = question_.nodes.empty() ? nullptr : &question_.nodes[static_cast<std::size_t>(member)];
    const std::uint64_t generation = question_.first_generation + static_cast<std::uint64_t>(call) - 1;
    return {question_.n, member, 0, generation, question_.radix, nodes};
}

// Moves `member` by one operation, if it can do one.
Explorer::Step Explorer::step(World& world, int member) {
    ReplayFabric fabric(world, question_.delivery, member);
    fabric.let_poll_peers(question_.poll_peers);
    const auto done = [&] { return Step{fabric.moved(), fabric.early() && question_.monotonic}; };
    auto& me = world.members[static_cast<std::size_t>(member)];
    for (int call = 1; call <= question_.calls; ++call) {
        fabric.enter(call);
        if (question_.schedule(fabric, turn_of(member, call)) != Code::ok) return done();
        if (me.left >= call) continue;
        me.left = call;
        me.call_begin = me.results.size();
    }
    me.finished = true;
    return done();
}

bool Explorer::may_land(const World& world, std::size_t flight) const {
    if (question_.delivery == Delivery::unordered) return true;
    const auto& one = world.in_flight[flight];
    return std::none_of(
        world.in_flight.begin(), world.in_flight.begin() + static_cast<std::ptrdiff_t>(flight),
        [&](const World::Flight& other) { return other.from == one.from && other.member == one.member; });
}

void Explorer::deliver_each(const World& world, std::vector<World>& out) const {
    for (std::size_t i = 0; i < world.in_flight.size(); ++i) {
        if (!may_land(world, i)) continue;
        World next = world;
        const World::Flight flight = next.in_flight[i];
        next.in_flight.erase(next.in_flight.begin() + static_cast<std::ptrdiff_t>(i));
        next.write(flight.member, flight.slot, flight.value);
        write_down(next);
        out.push_back(std::move(next));
    }
}

// Without an order, flights are a set: one order of writing them down makes equal worlds look equal.
void Explorer::write_down(World& world) const {
    if (question_.delivery != Delivery::unordered) return;
    std::sort(world.in_flight.begin(), world.in_flight.end(), [](const auto& a, const auto& b) {
        return std::tie(a.member, a.slot, a.value, a.from) < std::tie(b.member, b.slot, b.value, b.from);
    });
}

std::vector<World> Explorer::successors(const World& world) {
    std::vector<World> out;
    for (int member = 0; member < question_.n; ++member) {
        if (world.members[static_cast<std::size_t>(member)].finished) continue;
        World next = world;
        const Step done = step(next, member);
        if (!done.moved) continue;
        write_down(next);
        if (done.early) return {std::move(next)};
        out.push_back(std::move(next));
    }
    deliver_each(world, out);
    return out;
}

void Explorer::check(const World& world, bool stuck) {
    int most_left = 0;
    int least_entered = question_.calls;
    bool all_finished = true;
    for (const auto& member : world.members) {
        most_left = std::max(most_left, member.left);
        least_entered = std::min(least_entered, member.entered);
        all_finished = all_finished && member.finished;
    }
    if (most_left > least_entered) result_.fault = "left call " + std::to_string(most_left) + " too early";
    if (world.went_back && question_.monotonic) result_.fault = "a slot went back to an earlier value";
    if (stuck && !all_finished) result_.fault = "deadlock after call " + std::to_string(most_left);
}

Exploration Explorer::run() {
    std::vector<World> open{first_world()};
    std::unordered_set<std::string> seen{open.front().key()};
    while (!open.empty() && result_.fault.empty()) {
        const World world = std::move(open.back());
        open.pop_back();
        auto next = successors(world);
        check(world, next.empty());
        for (World& one : next) {
            if (seen.insert(one.key()).second) open.push_back(std::move(one));
        }
        if (seen.size() > question_.bound) {
            result_.complete = false;
            break;
        }
    }
    result_.states = seen.size();
    return result_;
}

}  // namespace npushmem::barrier::testing
