// SPDX-License-Identifier: BSD-3-Clause
// Decides when one core lets others run: before visible actions, after many calls, and in wait loops of the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/npu/check/cores/pipes.hpp"
#include "core/npu/runner.hpp"
#include "npushmem/npu/source_location.hpp"

namespace npushmem::npu::check {

// Recognises that a core waits in a loop of its own, whatever calls the loop consists of: the core reads again what it
// has read, finds the same, and changes nothing meanwhile.
class WaitLoop {
public:
    // So many repeated reads in a row make a wait loop.
    static constexpr int min_repeats = 16;

    // A read of `what` found `value`; `version` changes with the memory. True: this core waits, and has read the same
    // in this version of the memory before.
    bool read(std::uintptr_t what, std::uint64_t value, std::uint64_t version);
    // The core did something that others can see, or that changes what it reads.
    void changed();
    [[nodiscard]] bool recognised() const { return repeats_ >= min_repeats; }
    [[nodiscard]] bool just_recognised() const { return repeats_ == min_repeats; }
    // The last read repeated one of the same version, and so does nothing new.
    [[nodiscard]] bool repeats() const { return repeats_ > 0; }
    // Changes when everything is forgotten that was read before.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    // Whether the repeated reads in a row include one of this.
    [[nodiscard]] bool repeats(std::uintptr_t what);

private:
    struct Entry {
        std::uintptr_t what = 0;
        std::uint64_t value = 0;
        std::uint64_t version = 0;
        std::uint64_t epoch = 0;  // 0: unused; entries of another epoch than the current one are forgotten
        std::uint64_t row = 0;    // of repeated reads that its last read belongs to; 0: none
    };
    static constexpr std::size_t first_size = 16;
    static constexpr std::size_t max_size = 4096;

    // Of `what`, or a free one. Forgets everything when a loop reads more than the table holds.
    [[nodiscard]] Entry& entry_of(std::uintptr_t what);
    [[nodiscard]] Entry* probe(std::uintptr_t what);
    void grow();
    void end_row();

    std::vector<Entry> entries_;
    std::uint64_t epoch_ = 1;
    std::uint64_t row_ = 1;
    int repeats_ = 0;
};

class CoreScheduling {
public:
    // A read of the kernel.
    struct Read {
        const void* address = nullptr;
        std::uint64_t value = 0;
        SourceLocation where;
    };

    CoreScheduling(const CheckedCore& core, Domain& domain, CommandQueues& queues, detail::CoreContext* context)
        : core_(core),
          domain_(domain),
          queues_(queues),
          context_(context),
          place_(domain.calls.add(core.pe, core.index)) {}

    // The kernel makes a call: records it, and lets others run when it was one of many without a wait.
    void enter(const SourceLocation& where);
    // The kernel's last call. Relaxed: this thread has stored it.
    [[nodiscard]] SourceLocation last_call() const { return place_.at.load(std::memory_order_relaxed); }
    // A place before a visible action, where the schedule may run other cores first.
    void schedule_point();
    // The same, where only an exploration needs it.
    void step_point() {
        if (domain_.steps.active()) schedule_point();
    }
    // The same before a read, unless it belongs to a loop that the core repeats without a wait.
    void read_point(std::uintptr_t what, const SourceLocation& where) {
        if (domain_.steps.active() && !repeats_alone(what, where)) schedule_point();
    }
    // Whether the core repeats the reads of a wait loop within one step.
    [[nodiscard]] bool repeating() const { return granted_polls_ > 0; }
    // The same before an atomic.
    void schedule_point(std::uintptr_t what, const SourceLocation& where) {
        if (!repeats_alone(what, where)) schedule_point();
    }
    // The same before a signal, or a store to `stored`, where a schedule that delays others runs them.
    void write_point(std::uintptr_t stored = 0);
    // The same behind a visible action, where only an exploration does not need it.
    void schedule_point_after() {
        if (!domain_.steps.active()) schedule_point();
    }
    // With an exploration: returns when `ready` returns true. Throws KernelError when the launch has failed.
    void wait_until(const std::function<bool()>& ready);
    // With an exploration: returns when the condition holds.
    void wait_for(const detail::Condition& condition, const SourceLocation& where);
    // Everything that the core has signalled arrives.
    void deliver_signals();
    // Before a wait: runs deferred commands and signals if no other core would run them meanwhile.
    void run_deferred();
    // Records a read of `what` at a source line. Returns true in a wait loop that found nothing new.
    bool repeats(std::uintptr_t what, const Read& read);
    // The same, and in such a loop others run.
    void observe(std::uintptr_t what, const Read& read);
    // Others run until the memory changes, unless the loop repeats its reads without a wait.
    void wait_for_change() {
        if (must_wait()) wait_for_change(last_read_);
    }
    // The kernel changed what it reads.
    void changed() {
        loop_.changed();
        domain_.steps.forget_reads();
        leave_loop();
    }
    // The kernel yields.
    void yield(const SourceLocation& where);

private:
    // A wait loop that goes on without a change, because the schedule has decided so: it repeats its reads within one
    // step, until the core does something else or has repeated them often.
    [[nodiscard]] bool repeats_alone(std::uintptr_t what, const SourceLocation& where);
    // What the core does next comes after other steps; what it has done in the current step does not.
    void begin_ordered_step() {
        if (domain_.steps.has_acted()) switch_core(last_call());
    }
    // A read found nothing new. Returns whether the core waits.
    [[nodiscard]] bool must_wait();
    // The core polls. Returns true if the schedule delays others meanwhile: for some polls at each source line.
    [[nodiscard]] bool goes_on_alone();
    void end_repeating();
    void leave_loop();
    void wait_for_change(const Read& read);
    void switch_core(const SourceLocation& where);
    void preempt(const SourceLocation& where);

    const CheckedCore& core_;
    Domain& domain_;
    CommandQueues& queues_;
    detail::CoreContext* context_;
    CorePlace& place_;
    WaitLoop loop_;
    Read last_read_;  // since the last yield
    detail::PollState polling_{};
    std::uint64_t calls_ = 0;  // since others could run
    std::uint64_t turns_ = 0;  // that ended because of many calls
    // Of the loop: polls that it may still make without a wait and those that it was granted at its last wait, those
    // that it has made so since it began, the number of grants that it has not used up, whether it has used up one, and
    // its line.
    std::uint64_t granted_polls_ = 0;
    std::uint64_t grant_ = 0;
    std::uint64_t polls_alone_ = 0;
    int ended_grants_ = 0;
    bool used_up_ = false;
    std::uint64_t line_ = 0;
    // With a schedule that delays others: the polls by source line, whether others could not run since the last one,
    // and the word that the core has read last and not stored since.
    std::unordered_map<std::uintptr_t, std::uint64_t> polls_at_;
    bool alone_ = false;
    std::uintptr_t last_word_ = 0;
};

}  // namespace npushmem::npu::check
