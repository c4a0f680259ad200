// SPDX-License-Identifier: BSD-3-Clause
// The configuration of a combine: the placement of experts, the copy route, and the values that all ranks must agree
// on.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "core/moe/common/element.hpp"
#include "core/moe/common/narrow_rows.hpp"
#include "core/moe/common/routing.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

// Assigns experts to ranks in contiguous blocks, as equal as possible: 256 experts on 3 ranks make blocks of 86, 85 and
// 85.
class ExpertPlacement {
public:
    // Both at least 1; experts may be fewer than ranks (the last ranks then hold none).
    constexpr ExpertPlacement(std::int32_t experts, std::int32_t ranks)
        : experts_(experts), ranks_(ranks), base_(experts / ranks), larger_(experts % ranks) {}

    [[nodiscard]] constexpr std::int32_t experts() const { return experts_; }
    [[nodiscard]] constexpr std::int32_t ranks() const { return ranks_; }
    [[nodiscard]] constexpr std::int32_t local_experts(std::int32_t rank) const {
        return base_ + (rank < larger_ ? 1 : 0);
    }
    // The first expert of the rank; for rank == ranks() one past the last of all.
    [[nodiscard]] constexpr std::int32_t first_expert(std::int32_t rank) const {
        return rank * base_ + (rank < larger_ ? rank : larger_);
    }
    [[nodiscard]] constexpr std::int32_t rank_of(std::int32_t expert) const {
        const std::int32_t in_larger = larger_ * (base_ + 1);
        return expert < in_larger ? expert / (base_ + 1) : larger_ + (expert - in_larger) / base_;
    }

private:
    std::int32_t experts_;
    std::int32_t ranks_;
    std::int32_t base_;
    std::int32_t larger_;  // the first `larger_` ranks hold base_ + 1 experts
};

// The way in which a row is copied from x to its slot.

enum class CopyRoute : std::int32_t {
    staged,     // x -> unified buffer -> slot, double buffered: the form that runs on a device
    direct,     // x -> slot with ordinary stores
    streaming,  // x -> slot with stores that go past the caches
};

constexpr std::string_view name_of(CopyRoute route) {
    switch (route) {
        case CopyRoute::staged: return "staged through the unified buffer";
        case CopyRoute::direct: return "direct, ordinary stores";
        case CopyRoute::streaming: return "direct, streaming stores";
    }
    return "unknown";
}

// Streaming pays when a row fills whole lines and the bytes that one PE receives per call (`received`) leave the caches
// before they are read. An unknown number of cores share the last cache, so the bound is the size of a core's own
// cache. On a CPU staging never pays in direct mode: each row has its own slot, so rows cannot be joined into longer
// writes.
constexpr CopyRoute choose_route(Bytes row, Bytes received) {
    return row >= Bytes{1024} && received > Bytes{4U << 20} ? CopyRoute::streaming : CopyRoute::direct;
}

// With short rows, the acknowledgements of the readers cost more than the copies. Measured: from 1 KiB on with one PE
// per processor, and as early with several.
constexpr bool choose_in_place(Bytes row) { return row >= Bytes{1024}; }

// Mode of a combine.

// direct: the sender puts each row into its slot at the receiver. stream: rows go through a ring per pair of ranks, and
// the receiver puts them into its own slots. chunked: like stream, but for one chunk of the receiver's tokens at a
// time; the receiver adds a chunk up before the next one arrives, so it has slots for one chunk only.
enum class CombineMode : std::int32_t { direct = 0, chunked = 1, stream = 2 };

constexpr std::string_view name_of(CombineMode mode) {
    switch (mode) {
        case CombineMode::direct: return "direct";
        case CombineMode::chunked: return "chunked";
        case CombineMode::stream: return "stream";
    }
    return "unknown";
}

// The memory that holds a ring's bytes: the receiver's, or the sender's, from which the receiver copies them. In either
// case tail and head lie in the memory of the rank that waits for them.
enum class RingPlace : std::int32_t { receiver = 0, sender = 1 };

// The rows that travel. choice: one row for each choice of a token. rank: one row for each rank that holds any of a
// token's experts; that rank adds up its experts' rows of the token and returns one row (rank_rows.hpp).
enum class RowsPer : std::int32_t { choice = 0, rank = 1 };

// As a capacity: a dispatch has a slot for each token of each rank at each expert of a rank, so no counts travel first.
constexpr std::int64_t fixed_slots = -1;

struct CombineConfig {
    std::int32_t experts = 0;
    std::int32_t top_k = 0;
    std::int64_t hidden = 0;      // elements of a row
    std::int64_t max_tokens = 0;  // of one rank in one call
    ElementType input = ElementType::bfloat16;
    ElementType output = ElementType::bfloat16;
    CombineMode mode = CombineMode::direct;
    RowsPer rows_per = RowsPer::choice;
    NarrowType dispatch_type = NarrowType::none;  // of the rows of a dispatch; none: `input`
    bool narrow_input = false;                    // a dispatch gets rows of dispatch_type, not of `input`
    NarrowType combine_type = NarrowType::none;   // of the rows that return to their tokens' ranks; none: `input`
    std::int64_t scale_block = 0;                 // elements of a narrow row that share a scale; as NarrowLayout
    std::int64_t capacity = 0;                    // most rows that a dispatch may bring to one rank, or fixed_slots;
                                                  // 0: no dispatch
    std::int32_t expert_alignment = 1;            // the rows of each expert begin at multiples of it
    std::int64_t ring_rows = 0;                   // of each ring; 0: about 256 KiB, in mode chunked two chunks
    RingPlace ring_place = RingPlace::receiver;
    std::int64_t chunk_tokens = 256;               // mode chunked: tokens of a chunk
    bool audit = false;                            // count the rows put into each slot, and check them after every call
    CopyRoute route = CopyRoute::direct;           // of rows that return; each rank's own choice
    CopyRoute dispatch_route = CopyRoute::direct;  // of rows that a dispatch brings; likewise
    bool in_place = false;                         // let ranks read rows in x where they can; each rank's own choice
    std::chrono::nanoseconds timeout{0};           // of the wait for one rank; 0: the device's; each rank's own choice

    [[nodiscard]] Bytes row_bytes() const {
        return bytes_of(Elements{static_cast<std::uint64_t>(hidden)}, size_of(input));
    }
    [[nodiscard]] NarrowLayout narrow() const {
        return {static_cast<std::size_t>(hidden), static_cast<std::size_t>(scale_block)};
    }
    // A row that a dispatch brings, and one that it gets.
    [[nodiscard]] Bytes dispatched_row() const {
        return dispatch_type == NarrowType::none ? row_bytes() : narrow().row();
    }
    // A row that returns.
    [[nodiscard]] Bytes returned_row() const { return combine_type == NarrowType::none ? row_bytes() : narrow().row(); }
    // True if the dispatch quantizes the rows that it gets.
    [[nodiscard]] bool quantizes() const { return dispatch_type != NarrowType::none && !narrow_input; }
    [[nodiscard]] Bytes given_row() const { return narrow_input ? narrow().row() : row_bytes(); }
    [[nodiscard]] Rows slots() const {
        return rows_of(Tokens{static_cast<std::uint64_t>(max_tokens)}, static_cast<std::uint32_t>(top_k));
    }
    // True if rows go through rings.
    [[nodiscard]] bool streams() const { return mode != CombineMode::direct; }
    // True if ranks may read rows in place, instead of receiving them (rows_in_place.hpp).
    [[nodiscard]] bool allows_in_place() const {
        return mode == CombineMode::direct && combine_type == NarrowType::none && !audit;
    }
    // Tokens of a chunk, and chunks of a call.
    [[nodiscard]] Tokens chunk() const {
        const std::int64_t tokens = mode == CombineMode::chunked ? std::min(chunk_tokens, max_tokens) : max_tokens;
        return Tokens{static_cast<std::uint64_t>(tokens)};
    }
    [[nodiscard]] std::uint64_t chunks() const {
        return (static_cast<std::uint64_t>(max_tokens) + chunk().value() - 1) / chunk().value();
    }
    [[nodiscard]] Rows chunk_slots() const { return rows_of(chunk(), static_cast<std::uint32_t>(top_k)); }
    // The configuration by which the rows travel: this one, or with one row per rank that of a layer whose experts are
    // the ranks.
    [[nodiscard]] CombineConfig transport(std::int32_t ranks) const;
    // Rejects values that are out of range; the message names the first one and its limits.
    [[nodiscard]] Status validate() const;
};

// Does check_routing, and rejects more tokens than max_tokens.
Status check_own_routing(const CombineConfig& config, const RankRouting& own, std::int32_t rank);

}  // namespace npushmem::moe
