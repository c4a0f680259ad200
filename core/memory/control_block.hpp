// The first page of every PE's slice of the symmetric memory: who the PE is, whether it still takes part, and what it
// last asked of the symmetric heap. Written by its PE only (but for some of the counts), read by all; each group of
// words that is written at one time has a cache line of its own.
//
// clang-format off
//   byte   0  identity    magic, version, sizes, PE, process       written once, before the first barrier
//         64  life        starting, running or finalized; and      release store, acquire load
//                         whom the PE blames for its own failure; and
//                         the last meeting that it has come to      relaxed
//        128  heap[0..1]  the PE's last two collective heap calls  plain words, published by the barrier that follows
//        256  counts      what NPUSHMEM_STATS=1 counts of the PE, see MeetingCounts
//        448  unused      up to 4096
// clang-format on
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/memory/meeting_counts.hpp"

namespace npushmem {

inline constexpr std::uint64_t control_magic = 0x304d48535550'4eULL;  // "NPUSHM0", little endian
inline constexpr std::uint32_t control_version = 1;
inline constexpr std::uint64_t control_bytes = 4096;

enum class Life : std::uint32_t { starting = 0, running = 1, finalized = 2 };

enum class HeapCall : std::uint32_t { none = 0, malloc, calloc, align, realloc, free };

// One collective heap call as this PE made it. All PEs must have made the same one.
struct HeapRecord {
    std::uint64_t sequence;  // number of the meeting that the call is part of: the same on all PEs that meet
    std::uint32_t call;      // HeapCall
    std::int32_t code;       // result on this PE, a Code
    std::uint64_t bytes;
    std::uint64_t alignment;
    std::uint64_t offset;  // realloc and free: of the object that was given
    std::uint64_t result;  // offset of the object that was made
    std::uint64_t unused[2];
};

struct ControlBlock {
    alignas(64) std::uint64_t magic;
    std::uint32_t version;
    std::int32_t pe;
    std::uint64_t slice_bytes;
    std::int64_t process;
    std::uint64_t process_start;

    // Release when written, acquire when read: who sees `finalized` sees the meeting after which this PE comes to none.
    alignas(64) std::atomic<std::uint32_t> life;
    std::atomic<std::uint64_t> last_meeting;
    // The first PE that this one found dead, plus 1; 0: none. Who later finds this PE gone thus learns what ended it.
    std::atomic<std::int32_t> blames;
    // Number of the meeting that this PE has come to last, so that who waits in vain can say for whom.
    std::atomic<std::uint64_t> entered;

    // Indexed by the parity of the sequence: a PE may already write for meeting n + 1 while another still reads what
    // was written for n, and nobody gets to n + 2 before all have entered n + 1.
    alignas(64) HeapRecord heap[2];

    alignas(64) MeetingCounts counts;

    alignas(64) std::byte unused[control_bytes - 448];
};

static_assert(sizeof(HeapRecord) == 64);
static_assert(sizeof(ControlBlock) == control_bytes);
static_assert(offsetof(ControlBlock, life) == 64);
static_assert(offsetof(ControlBlock, heap) == 128);
static_assert(offsetof(ControlBlock, counts) == 256);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace npushmem
