// SPDX-License-Identifier: BSD-3-Clause
// Rows that no rank copies. In mode direct the ranks of the tokens can read the experts' rows in x, where x is in
// symmetric memory that all ranks map. Then a row is read once; a copied row is read twice and written once. Each rank
// of experts decides for its own x in each call. It offers x to every rank: it puts the place of x, and then the signal
// that announces the rows. A reader computes the same sums with the same roundings as the rank of the experts would
// (rank_rows.hpp), so the result has the same bits. (Of several NaNs another one may remain.) Then the reader
// acknowledges. A rank returns when all readers of its x have acknowledged; after that x may change.
//
// The symmetric memory, of which every PE has the same layout (R ranks):
//
//   offer(0, 0) ... offer(0, R-1)   what that rank offers in even epochs: uint64, where its x begins, in bytes from
//   this
//                                   block, 0: x is not offered; then int32 [local experts], the first row in x of each
//                                   expert's fragment for this rank
//   offer(1, 0) ... offer(1, R-1)   the same of odd epochs
//   read(0) ... read(R-1)           one 128-byte line each; word 0: the last epoch in which that rank has read rows
//                                   here; word 1: 1 if that rank can read rows here, never changes
//
// Each offer and each line has one writer, the rank in its index. Two offers are needed, because a rank that does not
// offer x waits for no acknowledgement. Two are enough: let p put its offer of epoch e + 2 at q. p has returned from
// epoch e + 1, so it has seen q's signal of that epoch, which q sets after its last read of p's offer of e.
//
// A rank whose call fails may change x although others still read it. It adds the abort bit to its signal before it
// returns, so a reader that finds no bit after it has read the rows has read them before the change.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/reduce.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

class InPlaceLayout {
public:
    static constexpr std::uint64_t line = 128;

    // `experts`: of the layer.
    constexpr InPlaceLayout(std::int32_t ranks, std::int32_t experts)
        : ranks_(static_cast<std::uint64_t>(ranks)),
          offer_(bytes_for(ExpertPlacement(experts, ranks).local_experts(0))) {}

    [[nodiscard]] constexpr Bytes offer_bytes() const { return offer_; }
    [[nodiscard]] constexpr Bytes offer(std::uint64_t epoch, std::int32_t source) const {
        return offer_ * ((epoch & 1U) * ranks_ + static_cast<std::uint64_t>(source));
    }
    [[nodiscard]] constexpr Bytes offers() const { return offer_ * (2 * ranks_); }
    [[nodiscard]] constexpr Bytes read(std::int32_t reader) const {
        return offers() + Bytes{line} * static_cast<std::uint64_t>(reader);
    }
    [[nodiscard]] constexpr Bytes can_read(std::int32_t reader) const { return read(reader) + Bytes{8}; }
    [[nodiscard]] constexpr Bytes total() const { return offers() + Bytes{line} * ranks_; }

private:
    static constexpr Bytes bytes_for(std::int32_t experts) {
        return aligned_up(Bytes{sizeof(std::uint64_t) + static_cast<std::uint64_t>(experts) * sizeof(std::int32_t)},
                          line);
    }

    std::uint64_t ranks_;
    Bytes offer_;
};

// A block of that layout, or none in a layer that copies all rows.
struct InPlaceMemory {
    std::byte* block = nullptr;
    InPlaceLayout layout{1, 1};

    [[nodiscard]] bool exists() const { return block != nullptr; }
    [[nodiscard]] std::uint64_t* word(Bytes at) const { return reinterpret_cast<std::uint64_t*>(block + at.value()); }
};

// The sender's part.

struct OfferInPlace {
    InPlaceMemory memory;
    const std::byte* offers = nullptr;  // [ranks] of offer_bytes each; null: x is not offered

    [[nodiscard]] bool is_offered() const { return offers != nullptr; }
};

// Puts the offer to a mapped rank, or that x is not offered. The signal of the rows must follow.
void put_offer(npu::Core& core, const OfferInPlace& offer, std::uint64_t epoch, std::int32_t rank);

// The reader's part.

struct ReadInPlace {
    InPlaceMemory memory;
    bool offers_own_rows = false;
    const std::int32_t* experts = nullptr;           // [tokens, top_k] of this rank's tokens, of the layer; -1: no row
    const float* weights = nullptr;                  // same shape
    const std::uint32_t* row_in_fragment = nullptr;  // same shape
    std::int32_t top_k = 0;
    ExpertPlacement placement{1, 1};
    Bytes row;              // of x
    bool per_rank = false;  // one row per rank

    // The rank that returns a row: `id` is its expert, or with one row per rank the rank itself.
    [[nodiscard]] std::int32_t rank_of(std::int32_t id) const { return per_rank ? id : placement.rank_of(id); }
};

// What the ranks offer in one call. A core makes the object when the signals of all ranks have arrived.
class Offers {
public:
    Offers(npu::Core& core, const ReadInPlace& in_place, std::uint64_t epoch);

    // True if the rank offers its rows.
    [[nodiscard]] bool has(std::int32_t rank) const { return in_place_.memory.exists() && place_of_x(rank) != 0; }
    [[nodiscard]] bool any(std::int32_t ranks) const;
    // The row of a choice, token * top_k + k. Its rank offers it.
    [[nodiscard]] const std::byte* row(std::uint64_t choice) const;
    // Adds the rows of the token's choices of a rank, ascending. There is at least one, and the rank offers them.
    void add_rows(std::uint64_t token, std::int32_t rank, WeightedRows& rows) const;

private:
    [[nodiscard]] const std::byte* offer_of(std::int32_t rank) const {
        return in_place_.memory.block + in_place_.memory.layout.offer(epoch_, rank).value();
    }
    [[nodiscard]] std::uint64_t place_of_x(std::int32_t rank) const;

    npu::Core& core_;
    const ReadInPlace& in_place_;
    std::uint64_t epoch_;
};

}  // namespace npushmem::moe
