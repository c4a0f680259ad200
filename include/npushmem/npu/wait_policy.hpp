// SPDX-License-Identifier: BSD-3-Clause
// The behaviour of a device when none of its cores can run.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "npushmem/npu/source_location.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

// A number of PEs: those of `list`, or those at equal distances from `first` on if it is null.
struct PeGroup {
    int first = 0;
    int stride = 1;
    int count = 0;
    const int* list = nullptr;

    // An empty group if `pe` is -1.
    static constexpr PeGroup one(int pe) { return {.first = pe, .count = pe < 0 ? 0 : 1}; }
    [[nodiscard]] constexpr int at(int index) const { return list != nullptr ? list[index] : first + index * stride; }
};

// The PE whose store ends a wait (-1: any), and all PEs without which that store may never come. The death of any of
// them ends the wait.
struct Awaited {
    constexpr Awaited(int awaited_pe = -1) : Awaited(awaited_pe, PeGroup::one(awaited_pe)) {}  // implicit
    // `needed` includes the PE. `needed.list` outlives the wait.
    constexpr Awaited(int awaited_pe, const PeGroup& needed) : pe(awaited_pe), needs(needed) {}

    int pe;
    PeGroup needs;
};

// The wait of a core that has lasted long, for reports.
struct LongWait {
    const char* what = "a core";       // the awaited condition
    const void* word = nullptr;        // the awaited word; null: none
    int pe = -1;                       // the PE whose store ends the wait; -1: any PE
    SourceLocation where;              // the line of the kernel
    std::chrono::nanoseconds began{};  // on the steady clock
};

// The threads that run cores call it; several threads of one device may call it concurrently.
class WaitPolicy {
public:
    WaitPolicy() = default;
    WaitPolicy(const WaitPolicy&) = delete;
    WaitPolicy& operator=(const WaitPolicy&) = delete;
    virtual ~WaitPolicy() = default;

    // Polls, pauses, yields or sleeps until `ready()` is true (Code::ok) or `timeout` has passed (Code::timeout).
    // Sleeps must be limited to a few milliseconds, because a remote store cannot end them.
    virtual Code until(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) = 0;
    // Number of polls before until() is called, for words that arrive sooner than until() starts.
    [[nodiscard]] virtual int polls() const { return 0; }
    // Pauses between two polls of a kernel. `round` counts the polls; larger rounds pause longer.
    virtual void pause(std::uint64_t round) = 0;
    // The reason why a wait that needs these PEs (an empty group: any PE) must end: one of them is dead, or the job is
    // being aborted. Ok: the wait continues. Called at intervals of 10 to 250 ms while no core can run, never on the
    // fast path.
    [[nodiscard]] virtual Status peer_status(const PeGroup& /*pes*/) const { return {}; }
    // Reports a long wait at the intervals of peer_status(), until end_observation() is called with the same `id`.
    // While several cores of a thread wait, one of them is reported.
    virtual void observe(const void* /*id*/, const LongWait& /*wait*/) {}
    virtual void end_observation(const void* /*id*/) {}
};

}  // namespace npushmem::npu
