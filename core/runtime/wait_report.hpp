// SPDX-License-Identifier: BSD-3-Clause
// The sentences about PEs that make no progress, from the records in their control blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/liveness.hpp"
#include "core/memory/control_block.hpp"

namespace npushmem {

// A PE as its control block describes it.
struct PeProgress {
    int pe = 0;
    bool alive = true;  // its process runs
    PeState state = PeState::running;
    std::uint64_t world_calls = 0;  // collective calls of the world that it has entered
    std::optional<PeWait> wait;     // the wait that has lasted long; none: it does not wait
};

// What a host knows about a PE of another host.
enum class RemotePeState { unknown, lost, finalized };

// Reads a control block of this process' memory, or a copy.
PeProgress progress_of(const ControlBlock& control, bool alive);

// Returns the condition that the PE waits for, with the PE or the object: "a barrier", "a lock at offset 4096".
std::string describe_condition(const PeWait& wait);

// Returns the call with its number in the team: "npushmem_barrier_all #12 of the team world".
std::string describe_call(const PeWait& wait);

// Returns one sentence for each group of PEs in the same state: "PEs 0-2 have waited for 61.2 s in npushmem_barrier_all
// #12 of the team world for a barrier". `now` is CLOCK_MONOTONIC in nanoseconds.
std::vector<std::string> describe_progress(std::span<const PeProgress> pes, std::int64_t now);

// Returns one sentence for each disagreement about the collective calls of a team: "PE 3 is in npushmem_int_broadcast
// #12 of the team world, all others are in npushmem_barrier_all #12". `npes` is the number of PEs of the job.
std::vector<std::string> describe_disagreements(std::span<const PeProgress> pes, int npes);

// Returns the sentence that a report about the PEs of one host lacks the others, with what this host knows about them:
// "PEs 4-7 run on other hosts, whose reports cover them; PE 5 is lost". Empty if all PEs of the job run on this host.
// `state` may be null: nothing is known.
std::string describe_other_hosts(const PeRange& local_pes, int npes, const std::function<RemotePeState(int pe)>& state);

}  // namespace npushmem
