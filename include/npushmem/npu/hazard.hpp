// SPDX-License-Identifier: BSD-3-Clause
// The errors that checked mode finds, and the format of findings. The numbers are stable: tests and notes cite them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "npushmem/npu/export.hpp"
#include "npushmem/npu/kernel_event.hpp"
#include "npushmem/npu/pipe.hpp"
#include "npushmem/npu/source_location.hpp"

namespace npushmem::npu {

enum class Hazard : unsigned char {
    none = 0,
    alignment = 1,           // UB address not 32-byte aligned, GM not aligned to the element
    ub_overflow = 2,         // allocation beyond the end of UB, padding included
    ub_overlap = 3,          // overlap of two live UB buffers, or with the library's part
    missing_flag = 4,        // unordered accesses of two pipes of one core to the same bytes
    unwritten_ub = 5,        // UB read before it was written, or padding used as data
    copy_shape = 6,          // length, count or gap that the hardware would truncate or reject
    stale_read = 7,          // scalar read of a line that was cached before the expected write
    unpublished = 8,         // data signalled while still in a cache or in MTE3's queue
    lost_update = 9,         // a line written back over bytes that others changed meanwhile
    bad_address = 10,        // GM out of bounds, freed, or not symmetric
    misaligned_scalar = 11,  // scalar access not aligned to its size
    redundant = 12,          // dcci or quiet with nothing to do: a hint, no error
    dma_race = 13,           // a copy reads bytes that another core or PE writes, unordered
    write_race = 14,         // two cores write the same bytes, unordered
    same_pipe = 15,          // overlapping commands of one pipe without a pipe barrier
    flag_set_twice = 16,     // a flag set again before the wait for it
    deadlock = 17,           // a wait that can never be satisfied
    flag_id = 18,            // flag id out of range, or the library's
    left_over = 19,          // kernel ends with flags set
    wrong_direction = 20,    // a flag between the wrong pipes
    barrier_on_scalar = 21,  // pipe barrier on S
    atomic_mode = 22,        // atomic mode left on
    core_barrier = 23,       // core barrier reached by some cores only
    team_mismatch = 24,      // PEs disagree on launch size, variant or team of a barrier
    generation = 25,         // a peer's generation leads by more than the protocol allows
    staging_reuse = 26,      // a buffer overwritten before the last copy out of it was complete
    asymmetric_heap = 27,    // symmetric allocations differ between PEs
};

// "H7"; empty for none.
NPUSHMEM_NPU_EXPORT std::string id_of(Hazard hazard);
// One line with the remedy.
NPUSHMEM_NPU_EXPORT const char* advice_for(Hazard hazard);

// One side of a finding: one of two accesses, or the only command.
struct FindingSide {
    int pe = -1;
    int core = -1;  // Core::index
    Pipe pipe = Pipe::scalar;
    const char* what = nullptr;  // the operation; null: no such side
    SourceLocation where;
    std::string elsewhere{};  // the line in another process; `where` is empty then
    // The bytes that it reads or writes, from the first to the last one; 0: unknown.
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    std::uint64_t event = 0;  // its number in Finding::events; 0: it is not there
};

struct Finding {
    Hazard hazard = Hazard::none;
    std::string kernel;       // its name, or the source line of its launch
    FindingSide here;         // the access that revealed the hazard
    FindingSide other;        // the conflicting access
    std::string place;        // the memory: allocation and offset
    std::string detail;       // the expected and the observed state
    std::uint64_t times = 1;  // occurrences between these two source lines
    // What explains the first occurrence: the two accesses, the operations that order them or should have, and others
    // of the same memory and the same cores. At most 24, in order. Each core keeps its last 64 operations. Those of
    // other processes are there if the job shares its records and draws reports (NPUSHMEM_NPU_CHECK_REPORT).
    std::vector<KernelEvent> events{};

    // Hints are not errors.
    [[nodiscard]] bool hint() const { return hazard == Hazard::redundant; }
    // The whole finding as readable text, in several lines.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
    // A sequence diagram of `events`: a column for each core, or for each pipe if both accesses are of one core. A
    // cross marks the two accesses; a dashed line shows the missing order. `columns`: width of a line in characters, 80
    // to 160 (other values count as the nearest of these); the text is UTF-8.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string diagram(int columns = 100) const;
    // The same as an SVG document, with the two accesses in red.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string svg() const;
    // The finding as a JSON object: hazard, kernel, detail, memory, advice, both accesses, and events.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string json() const;
};

}  // namespace npushmem::npu
