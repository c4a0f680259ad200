// The first page of every PE's slice of the symmetric memory: who the PE is, whether it still takes part, and what it
// last asked of the symmetric heap. Written by its PE only (but for some of the counts and `departures`), read by all;
// each group of words that is written at one time has a cache line of its own.
//
// clang-format off
//   byte   0  identity    magic, version, sizes, PE, process       written once, before the first barrier
//         64  state        starting, running or finalized; and      release store, acquire load
//                         the first PE that it found dead; and
//                         the last barrier that it has come to      relaxed
//        128  heap[0..1]  the PE's last two collective heap calls  plain words, published by the barrier that follows
//        256  counts      what NPUSHMEM_STATS=1 counts of the PE, see BarrierCounters
//        448  departures  PEs of other hosts that have finalized    written by those PEs, acquire load
// clang-format on
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace npushmem {

// What is counted of one PE with NPUSHMEM_STATS=1; lives in its control block, so that others can read it.
//
// All relaxed: numbers for people. Each group that one party writes has a cache line of its own.

struct BarrierCounters {
    // By the PE itself. Collective calls that contain a barrier count as well.
    alignas(64) std::atomic<std::uint64_t> barriers;
    std::atomic<std::uint64_t> timed;  // of them
    std::atomic<std::uint64_t> nanoseconds;
    std::atomic<std::uint64_t> longest;  // nanoseconds
    // When it entered the last two timed barriers, by parity: a PE may be at the next one already while another still
    // reads, and nobody gets to the one after that before the reader has come to the next.
    std::atomic<std::int64_t> entered_at[2];

    // By whoever looked who came last to a timed barrier.
    alignas(64) std::atomic<std::uint64_t> entered_last;
    std::atomic<std::uint64_t> late_nanoseconds;  // after the last but one

    // By the PE itself at finalize, see WaitCounters.
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
inline constexpr std::uint32_t control_version = 2;
inline constexpr std::uint64_t control_bytes = 4096;

enum class PeState : std::uint32_t { starting = 0, running = 1, finalized = 2 };

enum class HeapCall : std::uint32_t { none = 0, malloc, calloc, align, realloc, free };

// One collective heap call as this PE made it. All PEs must have made the same one.
struct HeapRecord {
    std::uint64_t sequence;  // number of the barrier that the call is part of: the same on all PEs that meet
    std::uint32_t call;      // HeapCall
    std::int32_t code;       // result on this PE, a Code
    std::uint64_t bytes;
    std::uint64_t alignment;
    std::uint64_t offset;   // realloc and free: of the object that was given
    std::uint64_t result;   // offset of the object that was made
    std::uint64_t address;  // realloc and free: the pointer that was given, if it names no object; else 0
    std::uint64_t unused;
};

// A PE that has finalized, and the number of its last barrier, of which 32 bits are enough: PEs that wait for each
// other are never far apart.
struct Departure {
    int pe = -1;
    std::uint32_t last_barrier = 0;

    [[nodiscard]] std::uint64_t packed() const {
        return (static_cast<std::uint64_t>(pe) + 1) << 32 | std::uint64_t{last_barrier};
    }
    static Departure unpacked(std::uint64_t word) {
        return {static_cast<int>(word >> 32) - 1, static_cast<std::uint32_t>(word)};
    }
    // Has a PE that has left `barriers` barriers left that last one as well?
    [[nodiscard]] bool is_before(std::uint64_t barriers) const {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(barriers) - last_barrier) >= 0;
    }
};

// PEs whose numbers differ by a multiple of this share a slot, which holds the one of them that departed last.
inline constexpr std::size_t departure_slots = (control_bytes - 448) / sizeof(std::uint64_t);

constexpr std::size_t departure_slot(int pe) { return static_cast<std::size_t>(pe) % departure_slots; }

struct ControlBlock {
    alignas(64) std::uint64_t magic;
    std::uint32_t version;
    std::int32_t pe;
    std::uint64_t slice_bytes;
    std::int64_t process;
    std::uint64_t process_start;

    // Release when written, acquire when read: who sees `finalized` sees the barrier after which this PE comes to none.
    alignas(64) std::atomic<std::uint32_t> state;
    std::atomic<std::uint64_t> last_barrier;
    // The first PE that this one found dead, plus 1; 0: none. Who later finds this PE gone thus learns what ended it.
    std::atomic<std::int32_t> first_dead_pe;
    // Number of the barrier that this PE has come to last, so that who waits in vain can say for whom.
    std::atomic<std::uint64_t> entered;

    // Indexed by the parity of the sequence: a PE may already write for barrier n + 1 while another still reads what
    // was written for n, and nobody gets to n + 2 before all have entered n + 1.
    alignas(64) HeapRecord heap[2];

    alignas(64) BarrierCounters counts;

    // Each is a Departure, packed, or 0. A PE of another host writes it over the network into its slot; this PE cannot
    // read that PE's state.
    alignas(64) std::atomic<std::uint64_t> departures[departure_slots];
};

static_assert(sizeof(HeapRecord) == 64);
static_assert(sizeof(ControlBlock) == control_bytes);
static_assert(offsetof(ControlBlock, state) == 64);
static_assert(offsetof(ControlBlock, heap) == 128);
static_assert(offsetof(ControlBlock, counts) == 256);
static_assert(offsetof(ControlBlock, departures) == 448);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace npushmem
