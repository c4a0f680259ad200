// SPDX-License-Identifier: BSD-3-Clause
// The first page of every PE's slice: the PE's identity, its state and its last symmetric heap calls. Only its PE
// writes it (except some of the counts, the turns, `ended`, `awaited`, `call_sums` and `departures`); all PEs read it.
// Words that are written at the same time share a cache line of their own.
//
// clang-format off
//   byte   0  identity    magic, version, sizes, PE, process       written once, before the first barrier
//         64  state        starting, running or finalized; and      release store, acquire load
//                         the first PE that it found dead; and
//                         the last barrier that it entered;         relaxed
//                         the ended PEs that others have found      written by other PEs, relaxed
//        128  heap[0..1]  the PE's last two collective heap calls  plain words, published by the barrier that follows
//        256  counts      the PE's counts with NPUSHMEM_STATS=1, see BarrierCounters
//        448  checking    the PE's kernels with NPUSHMEM_NPU_CHECK=1
//        512  progress    the PE's collective calls and long waits   see WaitRecord
//        704  awaited     what a sleeping wait_until waits for      see AwaitedBytes
//        768  call_sums   in the block of the first PE of a host:  written by the PEs of the host, relaxed
//                         sums of the symmetric heap calls of all
//                         PEs of the host
//        832  departures  PEs of other hosts that have finalized    written by other PEs, acquire load
//                         or died
// clang-format on
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/awaited_bytes.hpp"
#include "core/base/liveness.hpp"
#include "core/base/shared_segment.hpp"
#include "core/memory/wait_record.hpp"

namespace npushmem {

// The counts of one PE with NPUSHMEM_STATS=1, in its control block, so that other PEs can read them. All accesses are
// relaxed: nothing depends on the counts. The counts of each writer share a cache line of their own.
struct BarrierCounters {
    // Written by the PE itself. Includes collective calls that contain a barrier.
    alignas(64) std::atomic<std::uint64_t> barriers;
    std::atomic<std::uint64_t> timed;  // timed barriers
    std::atomic<std::uint64_t> nanoseconds;
    std::atomic<std::uint64_t> longest;  // nanoseconds
    // The times of entry to the last two timed barriers, by parity. A PE may enter the next one while another still
    // reads, but none enters the one after that before the reader enters the next.
    std::atomic<std::int64_t> entered_at[2];

    // Written by the PE that determines the last arrival of a timed barrier.
    alignas(64) std::atomic<std::uint64_t> entered_last;
    std::atomic<std::uint64_t> late_nanoseconds;  // delay after the last PE but one

    // Written by the PE itself at finalize, see WaitCounters.
    alignas(64) std::atomic<std::uint64_t> waits;
    std::atomic<std::uint64_t> wait_nanoseconds;
    std::atomic<std::uint64_t> spins;
    std::atomic<std::uint64_t> yields;
    std::atomic<std::uint64_t> sleeps;
    std::atomic<std::uint64_t> parks;
    std::atomic<std::uint64_t> liveness_checks;
    std::atomic<std::uint64_t> wakes;
};
static_assert(sizeof(BarrierCounters) == 192);

inline constexpr std::uint64_t control_magic = 0x304d48535550'4eULL;  // "NPUSHM0", little endian
inline constexpr std::uint32_t control_version = 7;
inline constexpr std::uint64_t control_bytes = 4096;

enum class PeState : std::uint32_t { starting = 0, running = 1, finalized = 2 };

enum class HeapCall : std::uint32_t {
    none = 0,
    malloc,
    calloc,
    align,
    realloc,
    free,
    register_buffer,
    unregister_buffer
};

// One collective heap call of this PE. All PEs must have made the same one.
struct HeapRecord {
    std::uint64_t sequence;  // number of the call's barrier: equal on all PEs that enter it
    std::uint32_t call;      // HeapCall
    std::int32_t code;       // result on this PE, a Code
    std::uint64_t bytes;
    std::uint64_t alignment;
    std::uint64_t offset;   // realloc, free and unregister_buffer: of the given object
    std::uint64_t result;   // offset of the new object
    std::uint64_t address;  // of these three: the given pointer, if it names no object; else 0
    std::uint64_t unused;
};

// A PE that has finalized, and the number of its last barrier; or a PE that is dead. 32 bits suffice for the number:
// PEs that wait for each other are never far apart.
struct Departure {
    int pe = -1;
    std::uint32_t last_barrier = 0;
    bool is_dead = false;

    static Departure of_dead(int pe) { return {pe, 0, true}; }
    [[nodiscard]] std::uint64_t packed() const {
        return (static_cast<std::uint64_t>(pe) + 1) << 32 | std::uint64_t{last_barrier} | (is_dead ? dead_bit : 0);
    }
    static Departure unpacked(std::uint64_t word) {
        return {static_cast<int>((word & ~dead_bit) >> 32) - 1, static_cast<std::uint32_t>(word),
                (word & dead_bit) != 0};
    }
    // Returns whether a PE that has left `barriers` barriers has also left that last one.
    [[nodiscard]] bool is_before(std::uint64_t barriers) const {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(barriers) - last_barrier) >= 0;
    }

private:
    static constexpr std::uint64_t dead_bit = std::uint64_t{1} << 63;
};

// PEs whose numbers differ by a multiple of this share a slot, which holds the last departure of a PE that has
// finalized, or a death until this PE has read it.
inline constexpr std::size_t departure_slots = (control_bytes - 832) / sizeof(std::uint64_t);

constexpr std::size_t departure_slot(int pe) { return static_cast<std::size_t>(pe) % departure_slots; }

// What the other PEs can know of a PE's kernels: `none`, which is nothing, or what it records.
enum class KernelRecords : std::uint32_t { none = 0, kept };

// With NPUSHMEM_NPU_CHECK=1.
struct KernelCheckRecord {
    // Of PE 0: the memory of npu::check::JobRecords; process 0: there is none. Published by the start's last barrier.
    SegmentHandle segment;
    // Of this PE. Kept from the start's last barrier on; none before the first kernel of a PE that cannot.
    std::atomic<KernelRecords> records;
    // The barrier after which the PE's host last called a function that may order something, plus 1; 0: it did not.
    std::atomic<std::uint64_t> host_calls;
};

// For reports about PEs that make no progress.
struct ProgressRecord {
    // The number of collective calls of the world that this PE has entered. Relaxed: a number for messages.
    std::atomic<std::uint64_t> world_calls;
    SharedTurn reports;  // of the first PE of the host: the PE that takes the turn reports
    WaitRecord wait;     // of this PE
};

struct ControlBlock {
    alignas(64) std::uint64_t magic;
    std::uint32_t version;
    std::int32_t pe;
    std::uint64_t slice_bytes;
    std::int64_t process;  // 0: the PEs of the host run in several PID namespaces
    std::uint64_t process_start;
    // The job: its number of PEs, and the process of PE 0.
    std::int32_t npes;
    std::int32_t first_process;
    std::uint64_t first_process_start;

    // Stored with release, loaded with acquire: a reader of `finalized` also sees the PE's last barrier.
    alignas(64) std::atomic<std::uint32_t> state;
    std::atomic<std::uint64_t> last_barrier;
    // The first PE that this one found dead, plus 1; 0: none. PEs that later find this one dead learn the cause from
    // it.
    std::atomic<std::int32_t> first_dead_pe;
    // Number of the last barrier that this PE entered, so that a timeout can name the missing PEs.
    std::atomic<std::uint64_t> entered;
    // In the block of the first PE of those that see each other's processes: see JobLiveness.
    SharedTurn sweeps;
    SharedTurn proc_sweeps;            // those that read /proc
    std::atomic<std::uint32_t> ended;  // PEs whose processes had ended in the last sweep

    // Indexed by the parity of the sequence: a PE may write for barrier n + 1 while another still reads the record of
    // n, but none enters n + 2 before all have entered n + 1.
    alignas(64) HeapRecord heap[2];

    alignas(64) BarrierCounters counts;

    alignas(64) KernelCheckRecord checking;

    alignas(64) ProgressRecord progress;

    AwaitedBytes awaited;

    alignas(64) std::atomic<std::uint64_t> call_sums[2];  // see CallSums

    // Each is a packed Departure, or 0. A PE of another host writes its slot over the network, because this PE cannot
    // read that PE's state. Other PEs write the slots of the dead; this PE clears these when it has read them.
    alignas(64) std::atomic<std::uint64_t> departures[departure_slots];
};

static_assert(sizeof(HeapRecord) == 64);
static_assert(sizeof(ControlBlock) == control_bytes);
static_assert(offsetof(ControlBlock, state) == 64);
static_assert(offsetof(ControlBlock, heap) == 128);
static_assert(offsetof(ControlBlock, counts) == 256);
static_assert(offsetof(ControlBlock, checking) == 448);
static_assert(offsetof(ControlBlock, progress) == 512);
static_assert(offsetof(ControlBlock, awaited) == awaited_bytes_offset);
static_assert(offsetof(ControlBlock, call_sums) == 768);
static_assert(offsetof(ControlBlock, departures) == 832);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace npushmem
