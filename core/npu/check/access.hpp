// SPDX-License-Identifier: BSD-3-Clause
// An access to memory by a pipe of a core, and vector clocks: the accesses that their holder is ordered behind.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/npu/source_line.hpp"
#include "npushmem/npu/pipe.hpp"
#include "npushmem/npu/remote_operations.hpp"
#include "npushmem/npu/source_location.hpp"

namespace npushmem::npu::check {

// For each agent (a pipe of a core): the number of the last of its accesses that the holder is ordered behind.
class Clock {
public:
    Clock() = default;
    // The clock of a core of this PE.
    explicit Clock(int pe) : pe_(pe) {}

    [[nodiscard]] int pe() const { return pe_; }
    [[nodiscard]] std::uint32_t operator[](std::size_t agent) const { return agent < at_.size() ? at_[agent] : 0; }

    void set(std::size_t agent, std::uint32_t to) {
        if (agent >= at_.size()) at_.resize(agent + 1);
        at_[agent] = to;
    }
    void raise(std::size_t agent, std::uint32_t to) { set(agent, std::max((*this)[agent], to)); }
    void join(const Clock& other) {
        join(other.at_);
        unrecorded_ = unrecorded_ || other.unrecorded_;
    }
    void join(std::span<const std::uint32_t> other) {
        if (other.size() > at_.size()) at_.resize(other.size());
        for (std::size_t i = 0; i < other.size(); ++i) at_[i] = std::max(at_[i], other[i]);
    }
    [[nodiscard]] std::span<const std::uint32_t> values() const { return at_; }

    // The holder is ordered behind something unrecorded, such as an action of a host program: it may be ordered behind
    // any access of another PE.
    [[nodiscard]] bool unrecorded() const { return unrecorded_; }
    void set_unrecorded() { unrecorded_ = true; }

private:
    int pe_ = -1;
    bool unrecorded_ = false;
    std::vector<std::uint32_t> at_;
};

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
    bool add = false;        // a copy that adds atomically to its target
    bool may_poll = false;   // a copy that arrives whole: it may read the old or the new signal

    [[nodiscard]] bool exists() const { return sequence != 0; }
    [[nodiscard]] Pipe pipe() const { return static_cast<Pipe>(agent % agents_per_core); }
    [[nodiscard]] std::uint32_t core() const { return agent / agents_per_core; }
    // Complete, as far as the holder of `clock` can rely on. A fence completes a copy for the PE that copied, and for
    // those that acquire a later signal to the PE that the copy goes to.
    [[nodiscard]] bool complete(const Clock& clock) const {
        if (clock[agent] >= sequence) return true;
        if (pe >= 0 && clock.pe() == pe && clock[fenced_agent(core())] >= sequence) return true;
        return to_target != no_agent && clock[to_target] >= sequence;
    }
    // The same for the reads of a copy: after a fence no later write can reach what it reads.
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

inline std::byte byte_in_memory(std::uintptr_t address) {
    return static_cast<std::byte>(__atomic_load_n(reinterpret_cast<const std::uint8_t*>(address), __ATOMIC_RELAXED));
}

inline std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace npushmem::npu::check
