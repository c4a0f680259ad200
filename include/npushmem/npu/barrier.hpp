// SPDX-License-Identifier: BSD-3-Clause
// Barriers among PEs, called by the cores of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "npushmem/npu/barrier_choice.hpp"
#include "npushmem/npu/core.hpp"
#include "npushmem/npu/stream.hpp"

namespace npushmem::npu {

// The `size` PEs start, start + stride, ...
struct TeamView {
    int start = 0;
    int stride = 1;
    int size = 1;

    [[nodiscard]] constexpr int pe(int index) const { return start + index * stride; }
    // Returns -1 when `pe` is not a member.
    [[nodiscard]] constexpr int index_of(int pe) const {
        const int distance = pe - start;
        if (stride == 1) return distance >= 0 && distance < size ? distance : -1;  // avoids a division
        if (stride == 0) return distance == 0 ? 0 : -1;
        const int index = distance / stride;
        return distance % stride == 0 && index >= 0 && index < size ? index : -1;
    }
};

// One 64-bit word alone in its cache line, so that two writers never share a line.
struct alignas(cache_line) BarrierLine {
    std::uint64_t word;
    std::uint64_t unused[7];
};

// Maximum number of signals a PE receives in two consecutive barriers: seven per round, seven rounds of radix 8 (2^21
// PEs).
inline constexpr std::size_t barrier_slots = 7 * 7 * 2;

// Barrier state of one PE for one team, in symmetric memory at the same offset on each member. Must be all zero before
// the first use and before the index of a freed team is used again.
//
//   line 0        generation: barriers completed here. Written by this PE only, read by it only.
//   line 1        arrival: the generation this PE has entered. Written by this PE, read by all (v3).
//   lines 2..99   slots of the barriers that push: written by one peer each, read by this PE.
struct BarrierState {
    BarrierLine generation;
    BarrierLine arrival;
    BarrierLine slots[barrier_slots];
};

static_assert(sizeof(BarrierLine) == 64);
static_assert(alignof(BarrierLine) == 64);
static_assert(offsetof(BarrierState, generation) == 0 && offsetof(BarrierState, arrival) == 64);
static_assert(offsetof(BarrierState, slots) == 128 && sizeof(BarrierState) == 100 * 64);

// Maximum number of cores that poll in v3; the cores of the launch and the size of the team limit it further.
inline constexpr int barrier_v3_pollers = 8;

// All cores of a launch on every member of the team must call the barrier. It returns on each core when all members
// have called it. A barrier_* first completes the earlier operations of this kernel (quiet: pipes drained, cache
// cleaned) and makes them visible to all members; a sync_* does not. `state` is this PE's state. All members must call
// the same variants in the same order; the variant may change from call to call. All variants work with launches of
// different sizes, but checked mode reports them (H24).
//
// Throw KernelError: Code::argument when this PE is not a member or the team is empty, and the errors of
// signal_wait_until, which name the awaited PE; the death of any member ends every wait of the barrier. After such a
// wait error the members disagree on the generation: zero the state on all of them before the next use.

// v1, dissemination: one core performs ceil(log2 n) rounds of one signal and one wait.
NPUSHMEM_NPU_EXPORT void barrier_v1(Core& core, const TeamView& team, BarrierState* state,
                                    const SourceLocation& where = SourceLocation::current());
NPUSHMEM_NPU_EXPORT void sync_v1(Core& core, const TeamView& team, BarrierState* state,
                                 const SourceLocation& where = SourceLocation::current());

// v2, dissemination of radix 2 to 8 (the same on every member): the cores share ceil(log_radix n) rounds of radix - 1
// signals and waits. Throws Code::range for another radix.
NPUSHMEM_NPU_EXPORT void barrier_v2(Core& core, const TeamView& team, BarrierState* state,
                                    int radix = barrier_v2_max_radix,
                                    const SourceLocation& where = SourceLocation::current());
NPUSHMEM_NPU_EXPORT void sync_v2(Core& core, const TeamView& team, BarrierState* state,
                                 int radix = barrier_v2_max_radix,
                                 const SourceLocation& where = SourceLocation::current());

// v3, all pairs: each PE publishes its arrival in its own memory, and up to eight of its cores read the arrivals of all
// other members. No two PEs write the same word.
NPUSHMEM_NPU_EXPORT void barrier_v3(Core& core, const TeamView& team, BarrierState* state,
                                    const SourceLocation& where = SourceLocation::current());
NPUSHMEM_NPU_EXPORT void sync_v3(Core& core, const TeamView& team, BarrierState* state,
                                 const SourceLocation& where = SourceLocation::current());

// A barrier among any PEs. `pes` names each PE once, in the same order on all of them. `state` belongs to this set of
// PEs, not to a team.
NPUSHMEM_NPU_EXPORT void barrier_partial(Core& core, std::span<const int> pes, BarrierState* state,
                                         const SourceLocation& where = SourceLocation::current());
NPUSHMEM_NPU_EXPORT void sync_partial(Core& core, std::span<const int> pes, BarrierState* state,
                                      const SourceLocation& where = SourceLocation::current());

// State of one PE for barriers across servers. Same rules as for BarrierState.
struct ServerBarrierState {
    BarrierState server;
    BarrierState leaders;
};

// A barrier in three steps with few signals between servers: the PEs of each server (`per_server` neighbours in the
// team) run v3, one PE of each server runs v1 with those of the other servers, and each server runs v3 again. Signals
// between servers use loads and stores, or the transport to the other server. Throws Code::argument when the team size
// is not a multiple of `per_server`.
NPUSHMEM_NPU_EXPORT void barrier_servers(Core& core, const TeamView& team, int per_server, ServerBarrierState* state,
                                         const SourceLocation& where = SourceLocation::current());
NPUSHMEM_NPU_EXPORT void sync_servers(Core& core, const TeamView& team, int per_server, ServerBarrierState* state,
                                      const SourceLocation& where = SourceLocation::current());

NPUSHMEM_NPU_EXPORT void barrier_with_choice(Core& core, const BarrierChoice& choice, const TeamView& team,
                                             BarrierState* state,
                                             const SourceLocation& where = SourceLocation::current());
NPUSHMEM_NPU_EXPORT void sync_with_choice(Core& core, const BarrierChoice& choice, const TeamView& team,
                                          BarrierState* state, const SourceLocation& where = SourceLocation::current());

// Queues a one-block kernel that runs the barrier: later launches of this stream begin when all members' streams have
// reached it. Without `choice`, the device's choice applies (NPUSHMEM_NPU_BARRIER).
NPUSHMEM_NPU_EXPORT Status barrier_on_device(Stream& stream, const TeamView& team, BarrierState* state);
NPUSHMEM_NPU_EXPORT Status barrier_on_device(Stream& stream, const TeamView& team, BarrierState* state,
                                             const BarrierChoice& choice);

}  // namespace npushmem::npu
