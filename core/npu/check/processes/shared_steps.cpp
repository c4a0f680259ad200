// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/processes/shared_steps.hpp"

#include <chrono>
#include <limits>

namespace npushmem::npu::check {

using explore::ThreadId;
using Answer = StepTurns::Answer;

namespace {

// How often a PE that waits for its turn reads what the hosts of all PEs do.
constexpr std::chrono::milliseconds host_check_interval{1};
// Marks addresses that stand for the checker's records of the memory (StepRecorder).
constexpr std::uint64_t records_bit = std::uint64_t{1} << 63;
// All memory of a PE that is not symmetric counts as one word: its addresses differ from run to run.
constexpr std::uint64_t private_memory = std::uint64_t{1} << 62;
constexpr std::uint64_t word_bytes = 8;

}  // namespace

SharedStepsControl::SharedStepsControl(const StepSharing& sharing, int pe, std::uint64_t queued_at, PlaceInJob place_of,
                                       std::function<void(int pe)> on_late_host)
    : SteppedControl(keeper_, sharing.turns().loops, std::numeric_limits<std::uint64_t>::max()),
      sharing_(sharing),
      pe_(pe),
      place_of_(std::move(place_of)),
      on_late_host_(std::move(on_late_host)),
      keeper_(slot()) {
    StepTurns::Slot& own = slot();
    ++own.launch;
    own.queued_at = queued_at;
    own.launch_ended = false;
    own.step.exists = false;
}

std::uint64_t SharedStepsControl::place(std::uintptr_t address) const {
    const std::uint64_t found = place_of_(address & ~records_bit);
    const std::uint64_t own = private_memory + static_cast<std::uint64_t>(pe_) * word_bytes;
    return (found != 0 ? found : own) | (address & records_bit);
}

void SharedStepsControl::translate(explore::Step& step) const {
    for (explore::MemoryAccess& access : step.accesses) {
        const std::uint64_t begin = place(access.begin);
        const bool is_private = (begin & private_memory) != 0;
        if (is_private) access.before.reset();
        access.end = begin + (is_private ? word_bytes : access.end - access.begin);
        access.begin = begin;
    }
    if (step.guard) step.guard.word = place(step.guard.word);
}

bool SharedStepsControl::publish_hosts() {
    StepTurns& turns = sharing_.turns();
    bool changed = false;
    for (int pe = 0; pe < sharing_.pes; ++pe) {
        const bool waits = sharing_.host_waits(pe);
        changed = turns.host_waits[static_cast<std::size_t>(pe)].exchange(waits) != waits || changed;
        std::atomic<std::uint64_t>& published = turns.entered[static_cast<std::size_t>(pe)];
        const std::uint64_t now = sharing_.host_barrier(pe);
        if (published.load(std::memory_order_relaxed) >= now) continue;
        // Release: what the host has published before it entered the barrier is known with it. A late number delays the
        // next step, nothing else.
        published.store(now, std::memory_order_release);
        changed = true;
    }
    return changed;
}

void SharedStepsControl::ask() {
    StepTurns& turns = sharing_.turns();
    StepTurns::Slot& own = slot();
    (void)publish_hosts();
    // Release: the scheduler acquires the number and then reads the request.
    const std::uint32_t number = own.asked.load(std::memory_order_relaxed) + 1;
    own.asked.store(number, std::memory_order_release);
    turns.notify_scheduler();
    SystemWaitOs os;
    // Acquire: pairs with the scheduler's release of the answer, and so with the steps of other PEs before it.
    for (;;) {
        const std::uint32_t answered = own.answered.load(std::memory_order_acquire);
        if (answered == number) break;
        sleep_on(os, own.answered, answered, host_check_interval);
        if (publish_hosts()) turns.notify_scheduler();
    }
    own.step.exists = false;
}

ThreadId SharedStepsControl::decide(const std::vector<ThreadId>& enabled) {
    if (failing()) {
        if (enabled.empty()) ends().deadlocked();
        if (!enabled.empty()) begin_step(enabled.front());
        return enabled.empty() ? -1 : enabled.front();
    }
    StepTurns::Slot& own = slot();
    own.preferred = preferred();
    own.enabled.clear();
    for (const ThreadId thread : enabled) own.enabled.add(thread);
    own.waiting.clear();
    for (const explore::Waiting& one : waiting()) own.waiting.add({one.thread, SharedGuard::of(one.guard)});
    ask();
    switch (own.answer) {
        case Answer::run: begin_step(own.thread); return own.thread;
        case Answer::look_again:
            end_idle_rounds();
            if (own.changed_by < 0) {
                wake_for_hosts();
                break;
            }
            domain().version.changed_elsewhere();
            wake_polling(sharing_.turns().slots[static_cast<std::size_t>(own.changed_by)].step.step());
            break;
        case Answer::idle: poll_alone(); break;
        case Answer::deadlock: ends().deadlocked(); break;
        case Answer::late_host: on_late_host_(own.late_pe); break;
        case Answer::step_limit: ends().on_step_limit(sharing_.turns().max_steps); break;
        case Answer::ended: break;
    }
    return -1;
}

void SharedStepsControl::end_launch() {
    if (std::exchange(slot().launch_ended, true)) return;
    end_run();
    slot().host_ahead = !turns().host_synchronizes[static_cast<std::size_t>(pe_)].load(std::memory_order_acquire);
    slot().enabled.clear();
    slot().waiting.clear();
    ask();
}

void SharedStepsControl::report_failure(Hazard hazard) {
    const std::uint32_t failure =
        hazard == Hazard::none ? StepTurns::kernel_failed : static_cast<std::uint32_t>(hazard);
    std::uint32_t none = 0;
    sharing_.turns().hazard.compare_exchange_strong(none, failure);
}

void SharedStepsControl::report_hint(Hazard hazard) { sharing_.turns().hint.store(static_cast<std::uint32_t>(hazard)); }

}  // namespace npushmem::npu::check
