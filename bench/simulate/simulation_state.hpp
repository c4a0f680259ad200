// SPDX-License-Identifier: BSD-3-Clause
// State of a simulation: links, members, the values in their slots, events, and cores.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/simulate/simulation.hpp"

namespace npushmem::simulate {

// Picoseconds. Whole numbers, so that simultaneous events have equal keys, and nothing depends on rounding.
using Time = std::int64_t;
constexpr double picoseconds = 1000;

struct LinkTimes {
    explicit LinkTimes(const Link& link)
        : latency(std::llround(link.latency * picoseconds)),
          overhead(std::llround(link.overhead * picoseconds)),
          gap(std::llround(link.gap * picoseconds)) {}
    Time latency;
    Time overhead;
    Time gap;
};

// The link of each pair of members: inside a node or between nodes.
class Links {
public:
    Links(const Team& team, const Model& model) : team_(team), node_(model.node), network_(model.network) {}

    // All members are on one node: each loads from and stores to the memory of the others.
    [[nodiscard]] bool mapped() const { return team_.nodes() == 1; }
    [[nodiscard]] int node_of(int member) const { return member / team_.per_node; }
    [[nodiscard]] const LinkTimes& between(int from, int to) const {
        return node_of(from) == node_of(to) ? node_ : network_;
    }
    // From a member to itself.
    [[nodiscard]] const LinkTimes& inside() const { return node_; }

private:
    Team team_;
    LinkTimes node_;
    LinkTimes network_;
};

struct Member {
    Time clock = 0;
    Time may_send = 0;  // earliest time of the next send, because of the gap
    Time may_receive = 0;
    Time acknowledged = 0;         // time when all its sent messages are acknowledged
    std::uint32_t done = 0;        // operations of its program
    std::uint64_t fetched = 0;     // by its add; a schedule makes at most one in a call
    barrier::AwaitedSlot awaited;  // the awaited slot, if it waits
    std::uint64_t wanted = 0;
    bool waits = false;
    bool is_runnable = true;  // its wait is over, or it has not started
    bool finished = false;
};

struct DeliveredValue {
    int slot;
    int next;  // of the same member
    Time time;
    Time overhead;  // to find it
    std::uint64_t value;
};

// The values in the slots of all members, as one list per member. A dropped value's place is used again.
class DeliveredValues {
public:
    explicit DeliveredValues(int members) : first_(static_cast<std::size_t>(members), -1) {}

    // The value that a slot has, null while it has none; valid until the next set().
    [[nodiscard]] DeliveredValue* find(int member, int slot) {
        for (int i = first_of(member); i >= 0; i = at(i).next)
            if (at(i).slot == slot) return &at(i);
        return nullptr;
    }
    void set(int member, int slot, std::uint64_t value, Time time, Time overhead) {
        if (DeliveredValue* there = find(member, slot))
            *there = {slot, there->next, time, overhead, value};
        else
            first_of(member) = add({slot, first_of(member), time, overhead, value});
    }
    void drop(int member, int slot) {
        int* next = &first_of(member);
        while (*next >= 0 && at(*next).slot != slot) next = &at(*next).next;
        if (*next < 0) return;
        const int index = *next;
        *next = at(index).next;
        at(index).next = free_;
        free_ = index;
    }

private:
    int& first_of(int member) { return first_[static_cast<std::size_t>(member)]; }
    DeliveredValue& at(int index) { return values_[static_cast<std::size_t>(index)]; }
    int add(const DeliveredValue& one) {
        if (free_ < 0) {
            values_.push_back(one);
            return static_cast<int>(values_.size()) - 1;
        }
        const int index = free_;
        free_ = at(index).next;
        at(index) = one;
        return index;
    }

    std::vector<int> first_;  // of each member's values in values_; -1: none
    std::vector<DeliveredValue> values_;
    int free_ = -1;  // first of those in values_ that are not in use
};

struct Event {
    enum class Kind : std::uint8_t { resume, signal, add, reply, turn } kind;
    int member;  // or core
    int slot = 0;
    int from = 0;
    std::uint64_t value = 0;
};

// A core that several members share in turns. It is idle while none of them can continue.
class Core {
public:
    void add(int member) { members_.push_back(member); }

    // Begins the turn of the next member at `now` or later; a turn costs `cost` if several members share the core.
    // Returns the member; none if the core has no turn now.
    std::optional<int> begin_turn(Time now, Time cost) {
        if (members_.empty() || idle_) return std::nullopt;
        at_ %= members_.size();
        time_ = std::max(time_, now) + (members_.size() > 1 ? cost : 0);
        return members_[at_];
    }
    // The member has run until `until`.
    void end_turn(Time until, bool finished) {
        time_ = std::max(time_, until);
        if (finished)
            members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at_));
        else
            ++at_;
    }
    // The member polled and cannot continue. When this is so for all, the core is idle.
    void skip_turn() {
        ++at_;
        idle_ = ++idle_turns_ >= members_.size();
        if (idle_) idle_turns_ = 0;
    }
    // One of the members can continue.
    void reset_idle_turns() { idle_turns_ = 0; }
    // Ends the idleness at `now`: the members polled meanwhile, one turn of `cost` per poll.
    void wake(Time now, Time cost) {
        idle_ = false;
        const Time turns = cost == 0 ? 0 : (std::max(now, time_) - time_ + cost - 1) / cost;
        at_ = (at_ + static_cast<std::size_t>(turns)) % members_.size();
        time_ += turns * cost;
    }

    [[nodiscard]] Time time() const { return time_; }
    [[nodiscard]] bool idle() const { return idle_; }
    [[nodiscard]] bool has_turns() const { return !idle_ && !members_.empty(); }

private:
    std::vector<int> members_;  // unfinished members
    std::size_t at_ = 0;
    std::size_t idle_turns_ = 0;
    Time time_ = 0;
    bool idle_ = false;
};

// The shared cores of all nodes; none if every member has a core of its own.
class SharedCores {
public:
    SharedCores(const Team& team, const Model& model)
        : per_node_(model.cores_per_node > 0 && team.per_node > model.cores_per_node ? model.cores_per_node : 0),
          team_(team),
          cores_(static_cast<std::size_t>(team.nodes()) * static_cast<std::size_t>(per_node_)) {
        for (int member = 0; per_node_ > 0 && member < team.members; ++member) of(member).add(member);
    }

    [[nodiscard]] int count() const { return static_cast<int>(cores_.size()); }
    [[nodiscard]] Core& at(int number) { return cores_[static_cast<std::size_t>(number)]; }
    [[nodiscard]] int number_of(int member) const {
        return member / team_.per_node * per_node_ + member % team_.per_node % per_node_;
    }

private:
    Core& of(int member) { return at(number_of(member)); }

    int per_node_;
    Team team_;
    std::vector<Core> cores_;
};

inline std::uint64_t key(int member, int slot) {
    return static_cast<std::uint64_t>(member) << 32U | static_cast<std::uint32_t>(slot);
}

}  // namespace npushmem::simulate
