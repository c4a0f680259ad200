// SPDX-License-Identifier: BSD-3-Clause
// What cores pass on to each other through memory: released words, signals in flight, and the copies that signals have
// overtaken.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/npu/check/access.hpp"
#include "core/npu/check/processes/peer_checks.hpp"
#include "core/npu/check/report/event_log.hpp"
#include "core/npu/check/step_recorder.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu::check {

// Counts what happens to global memory.
class MemoryVersion {
public:
    explicit MemoryVersion(PeerChecks* peers) : peers_(peers) {}

    // The number of the last event, of all PEs whose records this process shares.
    [[nodiscard]] Stamp last() const { return peers_ != nullptr ? peers_->version() : last_; }
    // Changes whenever the memory has other contents.
    [[nodiscard]] std::uint64_t changes() const { return changes_; }
    // A PE of another process has changed the memory.
    void changed_elsewhere() { ++changes_; }
    // Numbers an event. `visibly`: the memory may have other contents than before.
    Stamp changed(bool visibly = true) {
        if (visibly) ++changes_;
        return peers_ != nullptr ? peers_->next_version() : ++last_;
    }

private:
    PeerChecks* peers_;
    Stamp last_ = 1;
    std::uint64_t changes_ = 1;
};

// The clocks that words of global memory pass on from the core that writes them to the cores that read them.
class WordReleases {
public:
    using Address = std::uintptr_t;
    struct Earlier {
        std::uint32_t release = 0;  // number of the release; 0: none
        std::uint64_t value = 0;    // before it
    };

    explicit WordReleases(PeerChecks* peers) : peers_(peers) {}

    // Words that one write releases share the clock.
    using SharedClock = std::shared_ptr<const Clock>;

    // `write` changes the word from `before` to its present value. `add`: earlier releases remain in force.
    void release(Address word, const Clock& clock, bool add, const Access& write, std::uint64_t before) {
        release(word, std::make_shared<const Clock>(clock), add, write, before, word_in_memory(word));
    }
    void release(Address word, SharedClock clock, bool add, const Access& write, std::uint64_t before,
                 std::uint64_t after);
    // Joins `clock` with the clock of the word. `seen`: the value found there, if it is known. `waited`: by a wait or
    // an atomic.
    void acquire(Address word, Clock& clock, std::optional<std::uint64_t> seen = {}, bool waited = false) const;
    // The word before its last release, if another core made it and it is not complete for the holder of `clock`.
    [[nodiscard]] Earlier earlier(Address word, std::uint32_t core, const Clock& clock) const;

private:
    struct Word {
        SharedClock clock;
        Access write;
        std::uint64_t before = 0;
        std::uint32_t releases = 0;
    };

    PeerChecks* peers_;
    // No word is ever removed.
    std::pmr::monotonic_buffer_resource storage_;
    std::pmr::unordered_map<Address, Word> words_{&storage_};
};

// A signal that another PE will see.
struct PendingSignal {
    std::uint32_t core;
    Signal signal;
    Access access;
    Clock clock;
    explore::StepId sent = {};
    explore::ThreadId thread = -1;  // of an exploration, in which the signal arrives; -1: none yet
};

// Signals in flight. Their order is free until a fence, a quiet or a wait of their core.
class PendingSignals {
public:
    PendingSignals(GlobalMemory& memory, WordReleases& words, MemoryVersion& version, StepRecorder& steps,
                   PeerChecks* peers, EventLog& events)
        : memory_(memory), words_(words), version_(version), steps_(steps), peers_(peers), events_(events) {}

    void send(PendingSignal signal);
    // Performs the signal now.
    void arrive(const PendingSignal& signal);
    // The signals of one core that are in flight arrive, the youngest first: no fence ordered them. Other cores may run
    // meanwhile.
    void deliver_from(std::uint32_t core);
    // The signals of the core that sent the oldest one arrive. Returns false when no signal is in flight.
    bool deliver_oldest();

    // For an exploration: in any order.
    [[nodiscard]] std::vector<PendingSignal>& in_flight() { return in_flight_; }
    void deliver(explore::ThreadId thread);
    [[nodiscard]] bool any_from(std::uint32_t core) const;
    // Whether signals of the core have arrived that the core has not waited for.
    [[nodiscard]] bool any_arrived(std::uint32_t core) const;
    // The current step comes after the arrival of all signals of the core.
    void join_arrivals(std::uint32_t core);

private:
    struct Arrival {
        std::uint32_t core;
        explore::StepId step;
    };

    GlobalMemory& memory_;
    WordReleases& words_;
    MemoryVersion& version_;
    StepRecorder& steps_;
    PeerChecks* peers_;
    EventLog& events_;
    std::vector<PendingSignal> in_flight_;
    std::vector<Arrival> arrivals_;  // that their cores have not waited for
};

// H8 towards PEs of other processes: copies that a signal to the same PE has overtaken, and that no later signal of
// this launch publishes. One object serves all cores of a launch, because any core may publish the copy of another one.
class OvertakenCopies {
public:
    using Address = std::uintptr_t;
    static constexpr int any_pe = -1;

    void add(int pe, Address begin, const Access& copy) { copies_.push_back({pe, begin, copy, {}}); }
    // A store to a line of that PE was still in the cache when a core signalled to it.
    void add_unflushed(int pe, Address line, const Access& store, const Access& signal);
    void line_written_back(Address line, const Access& flush);
    // A signal to `pe`, ordered behind `clock`, publishes complete copies and overtakes the others of its core.
    void signalled(int pe, const Access& signal, const Clock& clock);
    // An atomic, or (any_pe) a change of a word of this PE, which any PE may poll: publishes complete copies.
    void published(int pe, const Clock& clock);
    // Calls report(signal, copy, begin) for each overtaken copy, and forgets all copies.
    void report_all(const std::function<void(const Access&, const Access&, Address)>& report);

private:
    struct Copy {
        int pe;
        Address begin;
        Access access;
        Access overtaken_by;
    };

    std::vector<Copy> copies_;  // not yet published
};

}  // namespace npushmem::npu::check
