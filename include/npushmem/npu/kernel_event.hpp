// SPDX-License-Identifier: BSD-3-Clause
// The operations of a kernel around a failure, as checked mode records them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "npushmem/npu/export.hpp"
#include "npushmem/npu/pipe.hpp"
#include "npushmem/npu/source_location.hpp"

namespace npushmem::npu {

// The bytes that an operation reads or writes, from the first to the last one.
struct EventMemory {
    std::uintptr_t address = 0;  // 0: none
    std::size_t bytes = 0;
    int pe = -1;  // the PE whose symmetric memory it is; -1: UB or other memory

    [[nodiscard]] bool overlaps(const EventMemory& other) const {
        return bytes > 0 && other.bytes > 0 && address < other.address + other.bytes && other.address < address + bytes;
    }
};

struct KernelEvent {
    enum class Kind : unsigned char {
        command,  // copies, puts, gets, and vector operations
        load,
        store,
        atomic,
        signal,
        wait,     // a wait that has ended, or a fetch: `value` is what it saw
        waiting,  // a wait that has not ended
        set_flag,
        wait_flag,
        pipe_barrier,
        dcci,
        fence,
        quiet,
        core_barrier,
        team_barrier,
    };

    Kind kind = Kind::command;
    Pipe pipe = Pipe::scalar;
    Pipe to = Pipe::scalar;  // of flags: the pipe that waits
    int pe = -1;
    int core = -1;               // Core::index
    const char* what = nullptr;  // the operation; null: no event
    SourceLocation where;
    const char* elsewhere = nullptr;  // the line in another process, where `where` is empty; null: in this process
    std::uint64_t number = 0;         // position among the recorded events, from 1
    std::uint64_t landed = 0;  // of writes to GM: the position at which memory had changed; 0: not before the failure
    std::uint64_t cause = 0;   // of waits: the number of the event that ended them; 0: unknown
    EventMemory read{};
    EventMemory written{};
    std::uint64_t value = 0;  // of signals and waits; of flags: the id
    std::uint64_t times = 1;  // consecutive repetitions, for example of a poll

    // The operation with its bytes and PEs: "put 512 B to PE 1".
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
};

}  // namespace npushmem::npu
