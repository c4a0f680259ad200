// SPDX-License-Identifier: BSD-3-Clause
// What an exploration knows about the steps of a program: which memory each one reads and writes, and after which other
// steps it can only come. A program has threads; a thread runs one step at a time. The exploration knows nothing of
// kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace npushmem::npu::check::explore {

// Numbers threads from 0 in the order in which they appear.
using ThreadId = int;

// The `number`-th step of a thread, from 1; 0: no step.
struct StepId {
    ThreadId thread = -1;
    std::uint32_t number = 0;
};

struct MemoryAccess {
    std::uint64_t begin;
    std::uint64_t end;
    bool write;
    std::optional<std::uint64_t> before = {};  // of a write of one whole word: its value before the step

    [[nodiscard]] bool conflicts(const MemoryAccess& other) const {
        return (write || other.write) && begin < other.end && other.begin < end;
    }
};

// A wait: its step can run only while the word, of 8 bytes, has a value for which `holds` returns true.
struct Guard {
    std::uint64_t word = 0;
    std::function<bool(std::uint64_t)> holds;  // empty: no guard
    // The same as numbers, for those who pass the guard to another process.
    std::uint32_t comparison = 0;
    std::uint64_t operand = 0;

    explicit operator bool() const { return static_cast<bool>(holds); }
    [[nodiscard]] MemoryAccess read() const { return {word, word + 8, false}; }
};

// One step that ran. Steps of different threads that do not conflict, and of which none must come after the other,
// commute: both orders lead to the same state.
struct Step {
    std::vector<MemoryAccess> accesses;  // without the guard's
    std::vector<StepId> after;           // steps of other threads that made this one possible, whatever the schedule
    Guard guard;
};

// Whether the steps conflict apart from their guards.
inline bool accesses_conflict(const Step& a, const Step& b) {
    for (const MemoryAccess& mine : a.accesses)
        for (const MemoryAccess& other : b.accesses)
            if (mine.conflicts(other)) return true;
    return false;
}

// Whether the step may change the word of the guard.
inline bool changes_word(const Step& step, const Guard& guard) {
    if (!guard) return false;
    const MemoryAccess read = guard.read();
    for (const MemoryAccess& access : step.accesses)
        if (access.conflicts(read)) return true;
    return false;
}

inline bool conflict(const Step& a, const Step& b) {
    return accesses_conflict(a, b) || changes_word(a, b.guard) || changes_word(b, a.guard);
}

// A thread that waits.
struct Waiting {
    ThreadId thread;
    Guard guard;
};

// Chooses the step that runs next.
class Decisions {
public:
    Decisions() = default;
    Decisions(const Decisions&) = delete;
    Decisions& operator=(const Decisions&) = delete;
    virtual ~Decisions() = default;

    // Returns one of `enabled`, which is not empty and ascending. `last`: the thread that is to continue unless there
    // is a reason against it; it need not be enabled; -1: none.
    virtual ThreadId choose(const std::vector<ThreadId>& enabled, ThreadId last) = 0;
    // The step of the chosen thread has run.
    virtual void executed(Step /*step*/) {}
    // Whether the current run repeats schedules that were run before: nothing that it still does is new.
    [[nodiscard]] virtual bool redundant() const { return false; }
    // Called when the run ends or becomes redundant: the threads whose guards do not hold.
    virtual void end_run(const std::vector<Waiting>& /*waiting*/) {}
};

// The order in which threads are tried: `last`, then those after it, then those before it.
inline std::vector<ThreadId> default_order(const std::vector<ThreadId>& enabled, ThreadId last) {
    std::vector<ThreadId> order;
    order.reserve(enabled.size());
    for (const ThreadId thread : enabled)
        if (thread >= last) order.push_back(thread);
    for (const ThreadId thread : enabled)
        if (thread < last) order.push_back(thread);
    return order;
}

}  // namespace npushmem::npu::check::explore
