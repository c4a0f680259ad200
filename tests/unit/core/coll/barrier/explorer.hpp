// SPDX-License-Identifier: BSD-3-Clause
// Runs the real schedules of a small team through every interleaving of their memory operations, over a fabric that
// delivers signals at once, in order, or in any order. Checks that no member leaves a call before all have entered it,
// and that no member waits forever.
//
// It does not distinguish every order. A satisfied wait stays satisfied (slots grow), and a signal in flight affects
// nobody until it lands. Such a step of one member is taken at once and alone: taking it earlier can only expose a
// fault earlier. The first operation of a call is never taken like this, because a late entry exposes members that left
// early.
//
// A member's state is the list of results of the operations it has done. One step runs its program again from the
// beginning with those results and does one new operation; then a fabric that returns `again` stops it. So the explored
// code is the code that runs, not a model of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier::testing {

enum class Delivery {
    coherent,   // a signal is in place when it is made
    ordered,    // signals of one member to another arrive in the order in which they were made
    unordered,  // in any order, also two to the same slot
};

struct ModelState {
    struct InFlightSignal {
        int from;
        int member;
        int slot;
        std::uint64_t value;
        bool operator==(const InFlightSignal&) const = default;
    };
    struct Member {
        std::vector<std::uint64_t> results;  // of the operations done
        int entered = 0;                     // the call whose first operation is done
        int left = 0;
        std::size_t call_begin = 0;  // how many results there were when `left` was left
        bool finished = false;
        bool operator==(const Member&) const = default;
    };

    std::vector<Member> members;
    std::vector<std::uint64_t> slots;  // member-major
    int slots_per_member = 0;
    std::vector<InFlightSignal> in_flight;  // in the order of making
    bool regressed = false;                 // a slot has been overwritten by an earlier value

    void write(int member, int index, std::uint64_t value) {
        regressed = regressed || !reached(value, slot(member, index));
        slot(member, index) = value;
    }

    std::uint64_t& slot(int member, int index) {
        return slots[static_cast<std::size_t>(member * slots_per_member + index)];
    }
    // Equal for worlds with the same future: results of completed calls do not count.
    [[nodiscard]] std::string key() const;
};

// The fabric of one member during one step.
class ReplayFabric {
public:
    ReplayFabric(ModelState& state, Delivery delivery, int own) : state_(&state), delivery_(delivery), own_(own) {}

    Code signal(int member, int slot, std::uint64_t value);
    Code add(int member, int slot, std::uint64_t value, std::uint64_t& before);
    Code wait(const AwaitedSlot& awaited, std::uint64_t value);
    Code complete();
    Code wait_equal(int slot, std::uint64_t value);              // for planted faults
    Code store_own(int slot, std::uint64_t value);               // for planted faults
    Code poll_equal(int member, int slot, std::uint64_t value);  // for planted faults: by get
    [[nodiscard]] bool polls_peers() const { return delivery_ == Delivery::coherent && poll_peers_; }
    void let_poll_peers(bool let) { poll_peers_ = let; }

    void enter(int call) { entering_ = call; }
    [[nodiscard]] bool moved() const { return moved_; }
    // Marks the operation as independent: it may precede everything that others could do meanwhile, see Explorer.
    [[nodiscard]] bool early() const { return early_; }

private:
    // Whether an operation changes nothing for the others, so that its order with theirs does not matter.
    enum class Visibility { to_others, to_nobody };
    // Runs `operation` (returns whether it could be done, and its result) if it is this step's; otherwise replays.
    template <class Operation>
    Code once(std::uint64_t& result, Visibility seen, Operation&& operation);
    [[nodiscard]] bool nothing_in_flight() const;

    ModelState* state_;
    Delivery delivery_;
    int own_;
    std::size_t at_ = 0;
    int entering_ = 0;
    bool moved_ = false;
    bool early_ = false;
    bool poll_peers_ = true;
};

// One call of one member: the schedule under test.
using Schedule = std::function<Code(ReplayFabric&, const BarrierCall&)>;

struct Exploration {
    std::string fault;  // "" when none was found
    std::size_t states = 0;
    bool complete = true;  // false: the bound on states ended it
};

struct ExplorationConfig {
    Schedule schedule;
    int n = 2;
    int calls = 3;
    int slots = 0;  // per member
    Delivery delivery = Delivery::coherent;
    bool poll_peers = true;
    int radix = 2;
    std::vector<NodeLayout> nodes = {};  // by member; empty: one node
    bool monotonic = true;  // slots must only grow, so that waits stay fulfilled; not so for some planted faults
    std::uint64_t first_generation = 1;  // near the wrap, to test it
    std::uint64_t initial = 0;           // what all slots hold, as if the calls before had been made
    std::size_t bound = 2'000'000;
};

class Explorer {
public:
    explicit Explorer(ExplorationConfig config) : config_(std::move(config)) {}

    Exploration run();

private:
    ModelState initial_state() const;
    struct Step {
        bool moved = false;
        bool early = false;
    };
    Step step(ModelState& state, int member);
    [[nodiscard]] BarrierCall barrier_call(int member, int call) const;
    void canonicalize(ModelState& state) const;
    std::vector<ModelState> successors(const ModelState& state);
    void deliver_each(const ModelState& state, std::vector<ModelState>& out) const;
    [[nodiscard]] bool may_land(const ModelState& state, std::size_t flight) const;
    void check(const ModelState& state, bool stuck);

    ExplorationConfig config_;
    Exploration result_;
};

}  // namespace npushmem::barrier::testing
