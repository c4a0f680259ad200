// Barriers among PEs, run by the cores of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "npushmem/npu/barrier_choice.hpp"
#include "npushmem/npu/core.hpp"
#include "npushmem/npu/stream.hpp"

namespace npushmem::npu {

// PEs start, start + stride, ..., `size` of them.
struct TeamView {
    int start = 0;
    int stride = 1;
    int size = 1;

    [[nodiscard]] constexpr int pe(int index) const { return start + index * stride; }
    // -1 when `pe` is not a member.
    [[nodiscard]] constexpr int index_of(int pe) const {
        const int distance = pe - start;
        if (stride == 1) return distance >= 0 && distance < size ? distance : -1;  // without a division
        if (stride == 0) return distance == 0 ? 0 : -1;
        const int index = distance / stride;
        return distance % stride == 0 && index >= 0 && index < size ? index : -1;
    }
};

// One 64-bit word alone in its cache line, so that no two writers share a line.
struct alignas(cache_line) BarrierLine {
    std::uint64_t word;
    std::uint64_t unused[7];
};

// Most signals a PE receives in the two parities of one barrier: seven per round, seven rounds of radix 8 (2^21 PEs).
inline constexpr std::size_t barrier_slots = 7 * 7 * 2;

// What one PE keeps per team, in symmetric memory at the same offset on each member; all zero before the first use and
// when a team's index is used again.
//
//   line 0        generation: barriers completed here. Written by this PE only, read by it only.
//   line 1        arrival: the generation this PE has entered. Written by this PE, read by all (v3).
//   lines 2..99   slots of the barriers that push: written by one peer each, read by this PE.
struct BarrierState {
    BarrierLine generation;
    BarrierLine arrival;
    BarrierLine slots[barrier_slots];
};

static_assert(sizeof(BarrierLine) == 64 && alignof(BarrierLine) == 64);
static_assert(offsetof(BarrierState, generation) == 0 && offsetof(BarrierState, arrival) == 64);
static_assert(offsetof(BarrierState, slots) == 128 && sizeof(BarrierState) == 100 * 64);

// Cores that poll, at most; also limited by the cores of the launch and by the team.
inline constexpr int barrier_v3_pollers = 8;

// Barriers are called by all cores of a launch on every member of the team, and return on each core when all members
// have called. A barrier_* completes what this kernel did before (quiet: pipes drained, cache cleaned) and makes it
// visible to all members; a sync_* does not. `state` is this PE's. All members call the same variants in the same
// order; they may change the variant from call to call. Checked mode reports launches of different sizes (H24), which
// all variants bear.
//
// Throw KernelError: Code::argument when this PE is no member or the team is empty, and the failures of
// signal_wait_until, naming the PE waited for; after those the members no longer agree on the generation, and the state
// must be zeroed on all of them before it is used again.

// v1, dissemination: ceil(log2 n) rounds of one signal and one wait, by one core.
NPUSHMEM_NPU_EXPORT void barrier_v1(Core& core, const TeamView& team, BarrierState* state,
                                    const std::source_location& where = std::source_location::current());
NPUSHMEM_NPU_EXPORT void sync_v1(Core& core, const TeamView& team, BarrierState* state,
                                 const std::source_location& where = std::source_location::current());

// v2, dissemination of radix 2 to 8 (the same on every member): ceil(log_radix n) rounds of radix - 1 signals and
// waits, shared by the cores. Code::range for another radix.
NPUSHMEM_NPU_EXPORT void barrier_v2(Core& core, const TeamView& team, BarrierState* state,
                                    int radix = barrier_v2_max_radix,
                                    const std::source_location& where = std::source_location::current());
NPUSHMEM_NPU_EXPORT void sync_v2(Core& core, const TeamView& team, BarrierState* state,
                                 int radix = barrier_v2_max_radix,
                                 const std::source_location& where = std::source_location::current());

// v3, centralised: each PE publishes its arrival in its own memory and up to eight cores read everybody else's. No two
// PEs write to one place.
NPUSHMEM_NPU_EXPORT void barrier_v3(Core& core, const TeamView& team, BarrierState* state,
                                    const std::source_location& where = std::source_location::current());
NPUSHMEM_NPU_EXPORT void sync_v3(Core& core, const TeamView& team, BarrierState* state,
                                 const std::source_location& where = std::source_location::current());

// Among any PEs, each named once, in the same order on all of them; `state` is not a team's but theirs.
NPUSHMEM_NPU_EXPORT void barrier_partial(Core& core, std::span<const int> pes, BarrierState* state,
                                         const std::source_location& where = std::source_location::current());
NPUSHMEM_NPU_EXPORT void sync_partial(Core& core, std::span<const int> pes, BarrierState* state,
                                      const std::source_location& where = std::source_location::current());

// What one PE keeps for barriers across servers; as BarrierState.
struct ServerBarrierState {
    BarrierState server;
    BarrierState leaders;
};

// Across servers: the PEs of each server (`per_server` neighbours in the team) run v3, one of each runs v1 with those
// of the other servers, and the server runs v3 again, so that few signals go between servers: by loads and stores, or
// by whatever transport reaches there. Code::argument when the team is not whole servers.
NPUSHMEM_NPU_EXPORT void barrier_servers(Core& core, const TeamView& team, int per_server, ServerBarrierState* state,
                                         const std::source_location& where = std::source_location::current());
NPUSHMEM_NPU_EXPORT void sync_servers(Core& core, const TeamView& team, int per_server, ServerBarrierState* state,
                                      const std::source_location& where = std::source_location::current());

NPUSHMEM_NPU_EXPORT void barrier_with_choice(Core& core, const BarrierChoice& choice, const TeamView& team,
                                             BarrierState* state,
                                             const std::source_location& where = std::source_location::current());
NPUSHMEM_NPU_EXPORT void sync_with_choice(Core& core, const BarrierChoice& choice, const TeamView& team,
                                          BarrierState* state,
                                          const std::source_location& where = std::source_location::current());

// Queues a one-block kernel that runs the barrier: later launches of this stream begin when all members' streams got
// here. The first form takes the device's choice (NPUSHMEM_NPU_BARRIER).
NPUSHMEM_NPU_EXPORT Status barrier_on_device(Stream& stream, const TeamView& team, BarrierState* state);
NPUSHMEM_NPU_EXPORT Status barrier_on_device(Stream& stream, const TeamView& team, BarrierState* state,
                                             const BarrierChoice& choice);

}  // namespace npushmem::npu
