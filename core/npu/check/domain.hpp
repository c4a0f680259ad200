// SPDX-License-Identifier: BSD-3-Clause
// What all cores that are checked together share. Used by one thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/npu/check/explore/loop_bounds.hpp"
#include "core/npu/check/report/findings.hpp"
#include "core/npu/check/signals.hpp"
#include "core/npu/check/step_recorder.hpp"
#include "core/npu/check/watchdog.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu::check {

// Decides when things happen that hardware may do at any time.
class Control {
public:
    Control() = default;
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;
    virtual ~Control() = default;

    // A command was queued. Returns true to run it and its predecessors at once, and false to run it when something
    // forces it.
    virtual bool run_command() = 0;
    // A core signals to another PE. Returns true to deliver the signal at once, and false to deliver it at the next
    // fence or quiet, or when no other core can run.
    virtual bool deliver_signal() = 0;
    // The running core is about to act visibly to others. Returns true to run another core first.
    virtual bool switch_core() = 0;
    // Whether a core that polls goes on alone for a while, and others run where updates are lost: between its read and
    // its store of a word, and between its last poll and its next write.
    [[nodiscard]] virtual bool delays_others() const { return false; }
    // What the current step of an exploration does.
    [[nodiscard]] StepRecorder& steps() { return steps_; }
    // Of an exploration; null: there is none.
    [[nodiscard]] explore::LoopBounds* loops() const { return loops_; }
    // Whether deferred commands and signals must run before a core waits, because its peers are other processes and
    // no core here would run them meanwhile.
    [[nodiscard]] virtual bool run_deferred_before_wait() const { return false; }

protected:
    // With an exploration: each visible action is a step.
    void explore(explore::LoopBounds& loops) {
        steps_.activate();
        loops_ = &loops;
    }

private:
    StepRecorder steps_;
    explore::LoopBounds* loops_ = nullptr;
};

// The core barrier among the cores of one PE.
class CoreBarrier {
public:
    // A core arrives at `here`, ordered behind `clock`. Returns true for the last one.
    bool arrive(const CheckedCore& core, const FindingSide& here, const Clock& clock, FindingLog& findings);
    // The steps in which the cores arrived at the last barrier.
    [[nodiscard]] const std::vector<explore::StepId>& arrivals() const { return passed_steps_; }
    void add_arrival(explore::StepId step) { gathering_steps_.push_back(step); }
    // What all cores are ordered behind after the last barrier.
    [[nodiscard]] const Clock& passed() const { return passed_; }
    // The kernel of one more core has returned. Returns the number of such cores.
    int end_kernel() { return ++ended_; }
    // Reports cores that wait in the barrier when the kernel of `core` has ended.
    void report_waiting(const CheckedCore& core, FindingLog& findings) const;

private:
    int arrived_ = 0;
    int ended_ = 0;
    FindingSide first_;
    Clock gathering_;
    Clock passed_;
    std::vector<explore::StepId> gathering_steps_;
    std::vector<explore::StepId> passed_steps_;
};

// The barriers that the members of teams call. All members must pass the same arguments.
class TeamCalls {
public:
    // `peers`: null where other PEs are not checked.
    TeamCalls(const MemoryNames& names, FindingLog& findings, PeerChecks* peers)
        : names_(names), findings_(findings), peers_(peers) {}

    void compare(const BarrierDescriptor& call, const FindingSide& here, int cores);

private:
    struct Call {
        BarrierDescriptor call;
        FindingSide side;
        int cores;
    };

    void compare(const Call& call, const Call& other, const std::string& state);

    const MemoryNames& names_;
    FindingLog& findings_;
    PeerChecks* peers_;
    // By the name of the state, which is the same on every PE, and the generation.
    std::map<std::pair<std::string, std::uint64_t>, std::vector<Call>> calls_;
};

// Owns and connects the state that the cores of a launch share. Its parts are public: each keeps its own invariants.
class Domain {
public:
    using Address = std::uintptr_t;
    // Signals to, and waits at, words of other PEs.
    struct Traffic {
        std::uint64_t signals = 0;
        std::uint64_t waits = 0;
    };

    // `peers`: null where other PEs are not checked.
    Domain(Control& its_control, const MemoryNames& its_names, std::string kernel, PeerChecks* peers = nullptr)
        : control(its_control),
          steps(its_control.steps()),
          names(its_names),
          memory(peers != nullptr ? &peers->memory() : nullptr),
          events(peers),
          version(peers),
          words(peers),
          signals(memory, words, version, steps, peers, events),
          cores(peers),
          copies(cores, peers),
          findings(std::move(kernel), names, cores, copies, events),
          team_calls(names, findings, peers),
          peers_(peers) {}
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;

    // What every core of the PE is ordered behind when its kernel begins.
    [[nodiscard]] Clock beginning(int pe) const { return peers_ != nullptr ? peers_->beginning() : Clock(pe); }
    // The core has ended its kernel.
    void core_ended(const Clock& clock) {
        cores.count_ended_kernel();
        if (peers_ != nullptr) peers_->core_ended(clock);
    }
    void launch_ended() {
        if (peers_ != nullptr) peers_->launch_ended(cores.all_ended());
    }
    // While it is held, no PE of another process sees a change of the memory without its record.
    [[nodiscard]] std::optional<JobLock> lock() const { return lock_records(peers_); }
    // For Access::text.
    [[nodiscard]] std::uint32_t number_of_text(const char* name, const SourceLocation& where) {
        return peers_ != nullptr ? peers_->number_of_text(name, where) : 0;
    }
    // `clock` of a core of `from_pe` as a write of a word passes it on: with the copies that fences ordered before
    // writes to the word's PE.
    [[nodiscard]] Clock passed_on(Address word, Clock clock, int from_pe) const;
    // A signal arrives, or a queued command runs. Returns false when nothing can happen without a core.
    bool progress() { return signals.deliver_oldest() || cores.run_oldest_command(); }

    Control& control;
    StepRecorder& steps;
    const MemoryNames& names;
    GlobalMemory memory;
    EventLog events;
    MemoryVersion version;
    WordReleases words;
    PendingSignals signals;
    OvertakenCopies overtaken;
    CoreTable cores;
    CopyOrder copies;
    FindingLog findings;
    TeamCalls team_calls;
    std::map<int, CoreBarrier> core_barriers;  // by PE
    CallTrace calls;
    Traffic traffic;

private:
    PeerChecks* peers_;
};

}  // namespace npushmem::npu::check
