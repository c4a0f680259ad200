// SPDX-License-Identifier: BSD-3-Clause
// Tiny programs over a few words, for tests of the exploration: a brute-force search through all interleavings, and a
// run under given decisions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/npu/check/explore/dpor.hpp"

namespace npushmem::npu::check::explore::toy {

inline constexpr std::size_t words = 3;

struct Operation {
    enum class Kind {
        write,         // word = value
        read,          // register = 10 * register + word
        add,           // register = word; word += value
        store,         // word = register
        skip_if,       // skips the next operation if the register has the value; touches no memory
        await,         // waits until word >= value
        await_equal,   // waits until word == value
        poll,          // reads the word until it is the value; sleeps between two reads until somebody writes it
        attempt,       // the same, but gives up after max_attempts reads: register = 10 * register + 9
        await_briefly  // waits until word == value, or times out: register = 10 * register + 8
    };
    Kind kind;
    std::size_t word = 0;
    std::uint64_t value = 0;
};

// Of an attempt. A search makes all reads one by one. A run under decisions sleeps after some; then a thread of its own
// makes the others.
inline constexpr std::size_t max_attempts = 3;
inline constexpr std::size_t attempts_before_sleep = 1;

using Thread = std::vector<Operation>;
using Program = std::vector<Thread>;

struct State {
    struct Place {
        std::size_t next = 0;
        std::uint64_t value = 0;   // the register
        bool asleep = false;       // in a poll, until its word is written
        std::size_t attempts = 0;  // that have failed
        auto operator<=>(const Place&) const = default;
    };
    std::array<std::uint64_t, words> memory{};
    std::vector<Place> threads;
    auto operator<=>(const State&) const = default;
};

class Machine {
public:
    // `sleeps`: attempts sleep between two reads.
    explicit Machine(const Program& program, bool sleeps = false)
        : program_(program), sleeps_(sleeps), steps_(program.size() * 2), expired_(program.size()) {
        state.threads.resize(program.size());
    }

    [[nodiscard]] std::vector<ThreadId> enabled() const {
        std::vector<ThreadId> all;
        for (std::size_t i = 0; i < program_.size(); ++i)
            if (can_run(i)) all.push_back(static_cast<ThreadId>(i));
        for (std::size_t i = 0; i < program_.size(); ++i)
            if (can_expire(i)) all.push_back(static_cast<ThreadId>(program_.size() + i));
        return all;
    }
    [[nodiscard]] std::vector<Waiting> waiting() const {
        std::vector<Waiting> all;
        for (std::size_t i = 0; i < program_.size(); ++i)
            if (!done(i) && guard_of(next(i)) && !can_run(i))
                all.push_back({static_cast<ThreadId>(i), guard_of(next(i))});
        return all;
    }
    Step run(ThreadId thread) {
        const auto i = static_cast<std::size_t>(thread);
        ++steps_[i];
        Step step = i < program_.size() ? run_operation(i) : expire(i - program_.size());
        if (i < program_.size() && expired_[i] > 0)
            step.after.push_back({static_cast<ThreadId>(program_.size() + i), expired_[i]});
        return step;
    }

    State state;

private:
    // The wait of thread `i` ends without what it waits for.
    Step expire(std::size_t i) {
        const Operation operation = next(i);
        State::Place& place = state.threads[i];
        place.value = place.value * 10 + (operation.kind == Operation::Kind::attempt ? 9 : 8);
        ++place.next;
        place.asleep = false;
        place.attempts = 0;
        expired_[i] = steps_[program_.size() + i];
        Step step;
        step.accesses.push_back({operation.word * 8, operation.word * 8 + 8, false});
        if (steps_[i] > 0) step.after.push_back({static_cast<ThreadId>(i), steps_[i]});
        return step;
    }
    void attempt(const Operation& operation, State::Place& place) const {
        const bool seen = state.memory[operation.word] == operation.value;
        if (!seen && ++place.attempts < max_attempts) {
            place.asleep = sleeps_ && place.attempts >= attempts_before_sleep;
            --place.next;
            return;
        }
        place.value = place.value * 10 + (seen ? std::min(place.attempts, attempts_before_sleep) : 9);
        place.attempts = 0;
    }
    Step run_operation(std::size_t i) {
        const Operation operation = next(i);
        State::Place& place = state.threads[i];
        std::uint64_t& word = state.memory[operation.word];
        Step step;
        step.guard = guard_of(operation);
        const std::uint64_t before = word;
        using Kind = Operation::Kind;
        ++place.next;
        switch (operation.kind) {
            case Kind::write: word = operation.value; break;
            case Kind::read: place.value = place.value * 10 + word; break;
            case Kind::add: place.value = word, word += operation.value; break;
            case Kind::store: word = place.value; break;
            case Kind::skip_if: place.next += place.value == operation.value ? 1 : 0; break;
            case Kind::await:
            case Kind::await_equal:
            case Kind::await_briefly: break;
            case Kind::attempt: attempt(operation, place); break;
            case Kind::poll:
                place.asleep = word != operation.value;
                if (place.asleep) --place.next;
                break;
        }
        const bool writes =
            operation.kind == Kind::write || operation.kind == Kind::add || operation.kind == Kind::store;
        const std::uint64_t at = operation.word * 8;
        if (writes) {
            step.accesses.push_back({at, at + 8, true, before});
            for (std::size_t other = 0; other < program_.size(); ++other)
                if (other != i && state.threads[other].asleep && next(other).word == operation.word)
                    state.threads[other].asleep = false;
        } else if (operation.kind == Kind::read || operation.kind == Kind::poll || operation.kind == Kind::attempt ||
                   operation.kind == Kind::await_briefly) {
            step.accesses.push_back({at, at + 8, false});
        }
        return step;
    }

    [[nodiscard]] const Operation& next(std::size_t i) const { return program_[i][state.threads[i].next]; }
    [[nodiscard]] bool done(std::size_t i) const { return state.threads[i].next >= program_[i].size(); }
    [[nodiscard]] bool can_run(std::size_t i) const {
        if (done(i) || state.threads[i].asleep) return false;
        if (next(i).kind == Operation::Kind::await_briefly) return state.memory[next(i).word] == next(i).value;
        const Guard guard = guard_of(next(i));
        return !guard || guard.holds(state.memory[next(i).word]);
    }
    [[nodiscard]] bool can_expire(std::size_t i) const {
        if (done(i)) return false;
        if (next(i).kind == Operation::Kind::await_briefly) return !can_run(i);
        return next(i).kind == Operation::Kind::attempt && state.threads[i].asleep;
    }
    static Guard guard_of(const Operation& operation) {
        const std::uint64_t value = operation.value;
        if (operation.kind == Operation::Kind::await)
            return {operation.word * 8, [value](std::uint64_t seen) { return seen >= value; }};
        if (operation.kind == Operation::Kind::await_equal)
            return {operation.word * 8, [value](std::uint64_t seen) { return seen == value; }};
        return {};
    }

    const Program& program_;
    bool sleeps_;
    std::vector<std::uint32_t> steps_;    // by thread, and by thread whose wait expired
    std::vector<std::uint32_t> expired_;  // by thread: the last step of its expiry
};

// Where all schedules end.
inline void search(const Machine& machine, std::set<State>& seen, std::set<State>& ends) {
    if (!seen.insert(machine.state).second) return;
    const std::vector<ThreadId> enabled = machine.enabled();
    if (enabled.empty()) ends.insert(machine.state);
    for (const ThreadId thread : enabled) {
        Machine next = machine;
        next.run(thread);
        search(next, seen, ends);
    }
}

inline std::set<State> all_ends(const Program& program) {
    std::set<State> seen;
    std::set<State> ends;
    search(Machine(program), seen, ends);
    return ends;
}

// Runs the program, to its end or until the run becomes redundant.
inline Machine run(const Program& program, Dpor& dpor) {
    Machine machine(program, true);
    ThreadId last = -1;
    for (std::vector<ThreadId> enabled = machine.enabled(); !enabled.empty(); enabled = machine.enabled()) {
        last = dpor.choose(enabled, last);
        if (dpor.redundant()) break;
        dpor.executed(machine.run(last));
    }
    dpor.end_run(machine.waiting());
    return machine;
}

struct Explored {
    std::set<State> ends;
    std::uint64_t runs = 0;
    std::uint64_t redundant = 0;
};

inline Explored explore(const Program& program) {
    Dpor dpor;
    Explored result;
    while (dpor.next_run()) {
        ++result.runs;
        const Machine machine = run(program, dpor);
        if (!dpor.redundant()) result.ends.insert(machine.state);
    }
    result.redundant = dpor.redundant_runs();
    return result;
}

inline std::string text_of(const Program& program) {
    std::string text;
    for (const Thread& thread : program) {
        text += "thread:";
        for (const Operation& operation : thread)
            text += " " + std::to_string(static_cast<int>(operation.kind)) + "(" + std::to_string(operation.word) +
                    "," + std::to_string(operation.value) + ")";
        text += "\n";
    }
    return text;
}

// `kinds`: of the operations to draw from.
inline Program draw_program(std::uint64_t seed, const std::vector<Operation::Kind>& kinds) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::uint64_t below) { return random() % below; };
    Program program(2 + draw(2));
    const std::uint64_t shared = 1 + draw(words);
    for (Thread& thread : program) {
        thread.resize(program.size() == 2 ? 3 + draw(3) : 2 + draw(3));
        for (Operation& operation : thread) operation = {kinds[draw(kinds.size())], draw(shared), 1 + draw(2)};
    }
    return program;
}

}  // namespace npushmem::npu::check::explore::toy
