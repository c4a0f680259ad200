// SPDX-License-Identifier: BSD-3-Clause
// A dispatch with one row per rank sends a token's row once to each group of ranks that share memory, for example those
// of one host. The row travels to one of the token's ranks there, its relay. The others copy it from the relay's x.
//
// Counts, slots and choices travel to every rank. So each rank knows the ranks of the tokens whose rows it gets, and
// every rank chooses the same relays. dispatch_layout.hpp says why nobody overwrites rows that others have yet to copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/moe/common/rank_rows.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "core/moe/dispatch/dispatch_layout.hpp"

namespace npushmem::moe {

// A row that this rank copies from its relay. Rows are indices in x.
struct RelayedRow {
    std::uint64_t row = 0;
    std::uint64_t relay_row = 0;
    std::int32_t relay = 0;

    bool operator==(const RelayedRow&) const = default;
};

class RowFanOut {
public:
    // No rank relays.
    RowFanOut() = default;
    // mapped: [ranks, ranks], not 0: the kernels of rank i can access the memory of rank j.
    RowFanOut(const std::vector<std::vector<bool>>& mapped, std::int32_t self);
    // The same where the ranks of a group can access each other and no others: without the square of the ranks.
    // groups: [ranks] the first rank of each rank's group.
    static RowFanOut of_groups(std::vector<std::int32_t> groups, std::int32_t self);
    // After a barrier behind publish_mapped() of all ranks.
    static Result<RowFanOut> fetch(SymmetricMemory& memory, const DispatchLayout& layout, const std::byte* region);

    [[nodiscard]] std::int32_t self() const { return self_; }
    // The other ranks of this rank's group, to which some rank sends through relays; else none.
    [[nodiscard]] const std::vector<std::int32_t>& peers() const { return peers_; }
    [[nodiscard]] bool sends_through_relays() const { return std::ranges::find(to_, true) != to_.end(); }
    // The rank that this rank sends the row to, on behalf of `rank`. `ranks`: of the token, ascending.
    [[nodiscard]] std::int32_t relay_of(std::uint32_t token, std::span<const std::int32_t> ranks,
                                        std::int32_t rank) const {
        return to_[index(rank)] ? choose(self_, token, ranks, rank) : rank;
    }
    // The rank from which this rank gets a row of `source`.
    [[nodiscard]] std::int32_t relay_from(std::int32_t source, std::uint32_t token,
                                          std::span<const std::int32_t> ranks) const {
        return from_[index(source)] ? choose(source, token, ranks, self_) : self_;
    }
    // Whether this rank may get rows of `source` from a relay.
    [[nodiscard]] bool relays_rows_of(std::int32_t source) const { return from_[index(source)]; }

private:
    static std::size_t index(std::int32_t rank) { return static_cast<std::size_t>(rank); }
    [[nodiscard]] std::int32_t choose(std::int32_t source, std::uint32_t token, std::span<const std::int32_t> ranks,
                                      std::int32_t rank) const;

    std::int32_t self_ = 0;
    std::vector<std::int32_t> group_;  // [ranks] the first rank of each rank's group
    std::vector<bool> to_;             // [ranks] this rank sends to the rank's group through relays
    std::vector<bool> from_;           // [ranks] the rank sends to this rank's group through relays
    std::vector<std::int32_t> peers_;
};

// Writes which ranks this one can access into its part of the memory.
void publish_mapped(const DispatchLayout& layout, std::byte* region, const std::uint8_t* host_served);

// For each row that this rank sends, 1 if its receiver copies it from a relay. Empty if there are no relays. `slots`:
// of slots_by_rank; `width`: of the routing.
std::vector<std::uint8_t> rows_through_relays(const RowFanOut& fan_out, const RoutingToRanks& routing,
                                              std::span<const std::uint32_t> slots, std::int32_t width);

// The rows of an accepted call that this rank copies. received: its rows, with slots and choices. Reads the slots of
// the relays, which have got all rows.
Result<std::vector<RelayedRow>> find_relayed_rows(const RowFanOut& fan_out, SymmetricMemory& memory,
                                                  const DispatchWork& work, const ReceivedRows& received,
                                                  const CombineConfig& config);

Status copy_relayed_rows(SymmetricMemory& memory, const DispatchWork& work, std::span<const RelayedRow> rows);

}  // namespace npushmem::moe
