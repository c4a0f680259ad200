// Who touched some bytes, and what must be known to be ordered behind it.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "core/npu/check/clock.hpp"
#include "npushmem/npu/pipe.hpp"

namespace npushmem::npu::check {

// Four agents per core, in the order of enum Pipe.
inline constexpr std::uint32_t pipes_per_core = 4;

struct Access {
    std::uint32_t agent = 0;
    std::uint32_t sequence = 0;  // of its completion, among the agent's; 0: there was no access
    std::uint32_t issued = 0;    // of its issue, among the scalar pipe's of the same core
    const char* name = nullptr;
    std::source_location where;
    bool may_poll = false;  // a copy that arrives whole: it may see what is being signalled or not

    [[nodiscard]] bool exists() const { return sequence != 0; }
    [[nodiscard]] Pipe pipe() const { return static_cast<Pipe>(agent % pipes_per_core); }
    [[nodiscard]] std::uint32_t core() const { return agent / pipes_per_core; }
    // Complete, as far as the holder of `clock` can rely on.
    [[nodiscard]] bool complete(const Clock& clock) const { return clock[agent] >= sequence; }
    // Issued before, though perhaps not complete.
    [[nodiscard]] bool issue_known(const Clock& clock) const { return clock[core() * pipes_per_core] >= issued; }
    [[nodiscard]] bool same(const Access& other) const { return agent == other.agent && sequence == other.sequence; }
};

// "file.cpp:12".
inline std::string text_of(const std::source_location& where) {
    return std::string(where.file_name()) + ":" + std::to_string(where.line());
}

inline std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace npushmem::npu::check
