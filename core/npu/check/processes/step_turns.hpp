// SPDX-License-Identifier: BSD-3-Clause
// Memory in which the PEs of a job ask one scheduler for the turns of their kernels, so that exactly one step of all
// kernels runs at a time. A PE asks before each step and says what the step before did; the scheduler answers.
//
// The scheduler lives in npushmem-run, which runs the job once for each schedule. Only kernels take turns: a PE without
// a launch neither asks nor delays the others while it is in a host barrier that a PE with a launch has not entered, or
// in another blocking call of its host.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/parking.hpp"
#include "core/base/shared_segment.hpp"
#include "core/npu/check/explore/loop_bounds.hpp"
#include "core/npu/check/explore/step.hpp"

namespace npushmem::npu::check {

// A list in shared memory. Items that do not fit are lost, and `complete` becomes false.
template <class T, std::size_t Capacity>
struct BoundedList {
    std::uint32_t count;
    bool complete;
    std::array<T, Capacity> items;

    void clear() {
        count = 0;
        complete = true;
    }
    void add(const T& item) {
        complete = complete && count < Capacity;
        if (complete) items[count++] = item;
    }
    [[nodiscard]] const T* begin() const { return items.data(); }
    [[nodiscard]] const T* end() const { return items.data() + count; }
};

// explore::Guard without its function.
struct SharedGuard {
    std::uint64_t word;
    std::uint64_t operand;
    std::uint32_t comparison;  // a Compare
    bool exists;

    static SharedGuard of(const explore::Guard& guard);
    [[nodiscard]] explore::Guard guard() const;
};

// explore::Step with the thread numbers of its process.
struct SharedStep {
    // More become ranges that contain them.
    static constexpr std::size_t max_accesses = 1024;
    static constexpr std::size_t max_after = 512;

    bool exists;
    BoundedList<explore::MemoryAccess, max_accesses> accesses;
    BoundedList<explore::StepId, max_after> after;
    SharedGuard guard;

    void take(const explore::Step& step);
    [[nodiscard]] explore::Step step() const;
};

struct StepTurns {
    static constexpr int max_pes = 64;
    static constexpr std::size_t max_threads = 1024;
    static constexpr std::uint32_t kernel_failed = ~0U;

    enum class Answer : std::uint32_t {
        run,         // the step of `thread`
        look_again,  // the step of PE `changed_by` has written memory, or a host may have
        idle,        // no kernel can take a step: wait loops shall read again
        deadlock,    // not even then
        late_host,   // the kernels wait, and the host of PE `late_pe` has neither launched one nor blocked
        step_limit,  // the run has more steps than allowed
        ended,       // the end of the launch is known
    };
    struct Waiting {
        explore::ThreadId thread;
        SharedGuard guard;
    };
    // Of one PE. A PE fills in its request, increments `asked`, and waits until `answered` is equal.
    struct Slot {
        std::atomic<std::uint32_t> asked;
        std::atomic<std::uint32_t> answered;
        // The request.
        std::uint32_t launch;
        std::uint64_t queued_at;  // the host barriers that the host had entered when it queued the launch
        bool host_ahead;          // when the launch ended: its host did not wait for it
        bool launch_ended;
        explore::ThreadId preferred;
        BoundedList<explore::ThreadId, max_threads> enabled;
        BoundedList<Waiting, max_threads> waiting;
        SharedStep step;  // that ran since the last answer
        // The answer.
        Answer answer;
        explore::ThreadId thread;
        int changed_by;  // -1: no PE
        int late_pe;
    };

    std::atomic<std::uint32_t> events;  // changes when the scheduler has something to do
    std::atomic<std::uint32_t> hazard;  // of the first finding, or kernel_failed; 0: none
    std::atomic<std::uint32_t> hint;    // the hazard of the last hint; 0: none
    std::uint64_t max_steps;
    explore::LoopBounds loops;  // of all runs
    // By PE: the number of the last host barrier that it is known to have entered.
    std::array<std::atomic<std::uint64_t>, max_pes> entered;
    // By PE: whether its host is known to wait in a call.
    std::array<std::atomic<bool>, max_pes> host_waits;
    // By PE: the number of its launches that have not ended, and whether a thread of its host waits until launches end.
    std::array<std::atomic<std::uint64_t>, max_pes> launches;
    std::array<std::atomic<bool>, max_pes> host_synchronizes;
    std::array<Slot, max_pes> slots;

    void notify_scheduler();
    // By the host, before it does anything else.
    void publish_launches(int pe, std::size_t unfinished);
    void publish_synchronizing(int pe, bool waits);
    // How a PE finds the memory: a value of NPUSHMEM_NPU_SCHEDULE.
    [[nodiscard]] static std::string text_of(const SegmentHandle& memory);
    // Returns nothing for other schedules.
    [[nodiscard]] static std::optional<SegmentHandle> parse(std::string_view schedule);
};

// What a launch needs to share its steps.
struct StepSharing {
    int pes;
    SharedSegment memory;
    // The number of the last host barrier that a PE has entered.
    std::function<std::uint64_t(int pe)> host_barrier;
    // Whether the host of a PE has waited in a call for some milliseconds.
    std::function<bool(int pe)> host_waits;

    [[nodiscard]] StepTurns& turns() const { return *reinterpret_cast<StepTurns*>(memory.base()); }
};

// Sleeps until the word changes; may wake early.
void sleep_on(WaitOs& os, std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds longest);
void wake_sleeper(std::atomic<std::uint32_t>& word);

}  // namespace npushmem::npu::check
