// Who touched some bytes, and what must be known to be ordered behind it.
#pragma once

#include <cstdint>

#include "core/npu/check/clock.hpp"
#include "core/npu/source_line.hpp"
#include "npushmem/npu/pipe.hpp"
#include "npushmem/npu/remote_operations.hpp"
#include "npushmem/npu/source_location.hpp"

namespace npushmem::npu::check {

// Four agents per core, in the order of enum Pipe, and one that stands for MTE3 as fences order it.
inline constexpr std::uint32_t pipes_per_core = 4;
inline constexpr std::uint32_t agents_per_core = pipes_per_core + 1;
constexpr std::uint32_t fenced_agent(std::uint32_t core) { return core * agents_per_core + pipes_per_core; }
inline constexpr std::uint32_t no_agent = ~std::uint32_t{0};

struct Access {
    std::uint32_t agent = 0;
    std::uint32_t sequence = 0;  // of its completion, among the agent's; 0: there was no access
    std::uint32_t issued = 0;    // of its issue, among the scalar pipe's of the same core
    const char* name = nullptr;
    SourceLocation where;
    // Of copies out only, for the order of fences: the PE of the core, and the agent of all copies of this core to that
    // target.
    int pe = -1;
    std::uint32_t to_target = no_agent;
    std::uint32_t text = 0;  // of `name` and `where`, for other processes; see PeerChecks
    bool add = false;        // a copy that adds atomically to what is there
    bool may_poll = false;   // a copy that arrives whole: it may see what is being signalled or not

    [[nodiscard]] bool exists() const { return sequence != 0; }
    [[nodiscard]] Pipe pipe() const { return static_cast<Pipe>(agent % agents_per_core); }
    [[nodiscard]] std::uint32_t core() const { return agent / agents_per_core; }
    // Complete, as far as the holder of `clock` can rely on. A fence completes a copy for the PE that copied, and for
    // those that learn of it from a later signal to the PE that the copy goes to.
    [[nodiscard]] bool complete(const Clock& clock) const {
        if (clock[agent] >= sequence) return true;
        if (pe >= 0 && clock.pe() == pe && clock[fenced_agent(core())] >= sequence) return true;
        return to_target != no_agent && clock[to_target] >= sequence;
    }
    // The same for what a copy reads: after a fence nobody's writes can meet it.
    [[nodiscard]] bool has_read(const Clock& clock) const {
        return complete(clock) || (pe >= 0 && clock[fenced_agent(core())] >= sequence);
    }
    // Issued before, though perhaps not complete.
    [[nodiscard]] bool issue_known(const Clock& clock) const { return clock[core() * agents_per_core] >= issued; }
    [[nodiscard]] bool same(const Access& other) const { return agent == other.agent && sequence == other.sequence; }
};

// The aligned word of 8 bytes there; 0 where the memory is not mapped. Relaxed: others may write at the same time.
inline std::uint64_t word_in_memory(std::uintptr_t address) {
    if (synthetic_address::is(address)) return 0;
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(address), __ATOMIC_RELAXED);
}

inline std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace npushmem::npu::check
