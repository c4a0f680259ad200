// SPDX-License-Identifier: BSD-3-Clause
// Collects what the current step of an exploration reads, writes, and comes after. Without an exploration it does
// nothing.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/npu/check/access.hpp"
#include "core/npu/check/explore/step.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu::check {

class StepRecorder {
public:
    using Address = std::uintptr_t;

    // Whether schedules are explored: each visible action of a core or a pipe is then a step of its own.
    [[nodiscard]] bool active() const { return active_; }
    void activate() { active_ = true; }

    void begin_step(explore::StepId id) {
        id_ = id;
        step_ = {};
        repeating_ = forgets_reads_ = false;
    }
    [[nodiscard]] explore::Step end_step() { return std::exchange(step_, {}); }
    // The current step.
    [[nodiscard]] explore::StepId id() const { return id_; }
    // Whether the step has done something that the exploration may put before another step.
    [[nodiscard]] bool has_acted() const { return step_.guard || !step_.accesses.empty(); }

    void read(Address begin, Address end) { add(begin, end, false); }
    // Called before the memory changes.
    void write(Address begin, Address end) {
        if (active_) write(begin, end, end - begin == 8 && begin % 8 == 0 ? word_in_memory(begin) : 0);
    }
    // `before`: the former value, if it is a whole word.
    void write(Address begin, Address end, std::uint64_t before) {
        if (add(begin, end, true) && end - begin == 8 && begin % 8 == 0) step_.accesses.back().before = before;
    }
    // Reads and writes of the checker's records about these bytes. The landing of a write is not one: it matters to
    // accesses of the memory only.
    void read_records(Address begin, Address end) { add(begin + records, end + records, false); }
    void write_records(Address begin, Address end) { add(begin + records, end + records, true); }
    // The accesses of a queued command, when it runs.
    void add(const std::vector<explore::MemoryAccess>& accesses);
    // What a command will read and write.
    [[nodiscard]] static std::vector<explore::MemoryAccess> accesses_of(const Command& command);

    // The step is a wait for the condition.
    void wait(const detail::Condition& condition);
    // Whether the step is a wait for this word.
    [[nodiscard]] bool waits_for(Address word) const { return step_.guard && step_.guard.word == word; }
    // The step can only come after that one.
    void after(explore::StepId step) {
        if (active_ && step.number != 0 && step.thread != id_.thread) step_.after.push_back(step);
    }

    // What the core has read before this step belongs to no wait loop any more.
    void forget_reads() { forgets_reads_ = true; }
    [[nodiscard]] bool forgets_reads() const { return forgets_reads_; }
    // Whether the core repeats a round of reads within the step: each access is then recorded once.
    void set_repeating(bool repeating) { repeating_ = repeating; }
    [[nodiscard]] bool repeating() const { return repeating_; }

    // Another address range stands for the checker's records.
    static constexpr Address records = Address{1} << 63;

private:
    bool add(Address begin, Address end, bool write) {
        if (!active_ || (repeating_ && has(begin, end, write))) return false;
        step_.accesses.push_back({begin, end, write});
        return true;
    }
    [[nodiscard]] bool has(Address begin, Address end, bool write) const;

    bool active_ = false;
    explore::StepId id_;
    explore::Step step_;
    bool repeating_ = false;
    bool forgets_reads_ = false;
};

}  // namespace npushmem::npu::check
