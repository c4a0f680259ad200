// Actions of PEs of other processes, which nobody reports: found by the traces that they leave in memory, and by what
// this core signals to them. Used where a process checks its own PE only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/npu/check/access.hpp"
#include "core/npu/check/scalar_cache.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu::check {

// The bytes of an operand in symmetric memory, one block after the other, as they are now.
std::vector<std::byte> bytes_of(const Operand& operand);
// Whether they are still these.
bool has_bytes(const Operand& operand, const std::vector<std::byte>& bytes);
// How many aligned words of 8 bytes, whole or in part, are not.
std::size_t changed_words(const Operand& operand, const std::vector<std::byte>& bytes);

// Whether bytes of a line that its core did not store differ from the memory, and the line with them as they are there.
bool differs(std::uintptr_t at, std::size_t bytes, const CacheLine& line);
void refresh(std::uintptr_t line_begin, CacheLine& line);

// For one core.
class Outside {
public:
    using Address = std::uintptr_t;

    // This core has waited for somebody: what it cached before is from before.
    void acquired() { ++acquires_; }
    void filled(CacheLine& line) const { line.acquires = acquires_; }
    // H7: whether a load that found these bytes in a line should have found others: somebody changed them in memory,
    // and this core has waited since it cached them.
    [[nodiscard]] bool stale(Address at, std::size_t bytes, const CacheLine& line) const;
    // H9: whether writing the whole line back undoes what somebody changed. Where: the first such byte; else 0.
    [[nodiscard]] static Address lost(Address line_begin, const CacheLine& line);

private:
    std::uint64_t acquires_ = 0;
};

}  // namespace npushmem::npu::check
