// SPDX-License-Identifier: BSD-3-Clause
// The symmetric memory into which the rows of a combine arrive, and the checks of its contents.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/slot_layout.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/direct/rows_in_place.hpp"
#include "core/moe/ring/core_ring.hpp"

namespace npushmem::moe {

// Owns the two buffers of slots, the offers of rows in place, the rings of modes stream and chunked, and the counters
// of the audit. Between calls it can check that no rank wrote where none may, and with an audit that every slot was
// written as often as the routing requires.
class CombineMemory {
public:
    // Collective. Zeroed, with the canaries written. `config`: of the layer. `memory` must outlive the object.
    static Result<CombineMemory> allocate(const CombineConfig& config, SymmetricMemory& memory);

    [[nodiscard]] const SlotLayout& layout() const { return layout_; }
    [[nodiscard]] std::byte* region() const { return region_.data(); }
    // Modes stream and chunked.
    [[nodiscard]] RingMemory rings() const;
    // None in a configuration whose rows are never read in place.
    [[nodiscard]] InPlaceMemory in_place() const { return {in_place_.data(), in_place_layout_}; }
    // Symmetric [2, slots] counters of rows put into each slot; null without an audit.
    [[nodiscard]] std::uint64_t* arrivals() const { return reinterpret_cast<std::uint64_t*>(arrivals_.data()); }

    // Makes all words and counters zero, as after allocate. No rank may access the memory meanwhile.
    void clear();
    // Audit: counts the rows that call `epoch` brings. `experts`: [tokens, top_k] of this rank.
    void count_expected(std::span<const std::int32_t> experts, std::uint64_t epoch);
    // Checks the memory after call `epoch`. No call may run meanwhile.
    [[nodiscard]] Status check(std::uint64_t epoch) const;

private:
    CombineMemory(const CombineConfig& config, std::int32_t ranks);

    Status allocate_blocks(SymmetricMemory& memory);
    void plant_canaries();
    [[nodiscard]] Status check_canary(std::uint64_t epoch) const;
    [[nodiscard]] Status check_rings_at_rest(std::uint64_t epoch) const;
    [[nodiscard]] Status check_arrivals(std::uint64_t epoch) const;

    CombineConfig config_;  // CombineConfig::transport
    std::int32_t ranks_;
    SlotLayout layout_;
    InPlaceLayout in_place_layout_;
    // Declared in the order of allocation, so that every PE releases them in the same, reverse order.
    SymmetricBlock region_;
    SymmetricBlock in_place_;
    SymmetricBlock rings_;
    SymmetricBlock arrivals_;
    std::vector<std::uint64_t> expected_;  // audit: [2, slots] rows that must have been put into each slot so far
};

}  // namespace npushmem::moe
