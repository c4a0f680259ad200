#include "npushmem/npu/hazard.hpp"

#include <fmt/format.h>

#include <array>

#include "core/npu/source_line.hpp"
namespace npushmem::npu {
namespace {

constexpr std::array advices{
    "",
    "allocate with ub_alloc, or place buffers at multiples of 32; use data_copy_pad for odd GM addresses",
    "split the work into tiles that fit, and count the padding up to 32 bytes of each block",
    "give each buffer bytes of its own, release before reuse, and keep out of the library's part",
    "set_flag on the pipe that comes first and wait_flag on the one that comes after (dcci after scalar stores to GM)",
    "copy or fill the buffer first; process or copy out only the elements that are data",
    "use data_copy_pad for lengths that are no multiple of 32 bytes, and split beyond the limits",
    "dcci the line after the wait and before the load; the wait refreshes the signal's own line only",
    "before the signal: dcci the stored lines, and set_flag/wait_flag<copy_out, scalar> or quiet after copies out",
    "give each writer 64-byte lines of its own, and dcci right after the stores",
    "allocate it symmetrically on all PEs, free it after its last use, and check the index",
    "align the address to the size of the access",
    "leave it out",
    "let the reader wait for the writer's signal, or the writer for the reader's, before the copy",
    "separate the ranges by core, use atomics, or order the writers by a signal or core_barrier",
    "put a pipe_barrier of that pipe between the two commands",
    "wait for each flag before it is set again, or use two ids",
    "make sure that somebody sets what is waited for, on the path that is taken",
    "use ids 0 to 5",
    "wait for every flag that was set",
    "use the flag from the pipe that writes to the pipe that signals: copy_out to scalar",
    "leave it out; wait for a flag if S shall wait for a pipe",
    "clear_atomic right after the copies that shall add",
    "call core_barrier on all cores, from the same line, equally often",
    "launch the same number of blocks and pass the same team and variant on every PE",
    "zero the state on all members before a team's index is used again, and call the barrier equally often",
    "wait for a flag from copy_out before the buffer is filled again",
    "allocate the same sizes in the same order on every PE",
};

std::string describe(const FindingSide& side) {
    return fmt::format("{} on PE {} core {} pipe {} at {}", side.what, side.pe, side.core, name_of(side.pipe),
                       text_of(side.where));
}

}  // namespace

std::string id_of(Hazard hazard) {
    return hazard == Hazard::none ? std::string{} : fmt::format("H{}", static_cast<int>(hazard));
}

const char* advice_for(Hazard hazard) { return advices.at(static_cast<std::size_t>(hazard)); }

std::string Finding::text() const {
    std::string text =
        fmt::format("{} {}in {}: {}\n  {}", id_of(hazard), hint() ? "(hint) " : "", kernel, detail, describe(here));
    if (other.what != nullptr) text += "\n  against " + describe(other);
    if (!place.empty()) text += "\n  memory: " + place;
    if (times > 1) text += fmt::format("\n  {} times between these lines", times);
    return text + "\n  advice: " + advice_for(hazard);
}

}  // namespace npushmem::npu
