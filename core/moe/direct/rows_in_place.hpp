// SPDX-License-Identifier: BSD-3-Clause
// Rows that no rank copies. In mode direct, the ranks of the tokens can read the experts' rows in x, where x is in
// symmetric memory and all ranks map it: less than a third of the bytes move. Each rank of experts decides for its own
// x in each call. It gives the place of x to every rank, with the signal that announces the rows. A reader computes the
// same sums with the same roundings as the rank of the experts would (rank_rows.hpp), so the result has the same bits.
// Then it acknowledges. A rank returns, and x may change, when all readers have acknowledged.
//
// The symmetric memory, of which every PE has the same layout (R ranks):
//
//   offer(0) ... offer(R-1)   what that rank offers: uint64, where its x begins, in bytes from this block, 0: nowhere;
//                             then int32 [local experts], the first row in x of each expert's fragment for this rank
//   read(0) ... read(R-1)     one 128-byte line each; word 0: the last epoch in which that rank has read rows here;
//                             word 1: 1 if that rank can read rows here, never changes
//
// Each offer and each line has one writer, the rank in its index. One offer is enough: a rank puts the next one after
// the reader's acknowledgement.
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

    // Of the experts of the layer.
    constexpr InPlaceLayout(std::int32_t ranks, std::int32_t experts)
        : ranks_(ranks),
          offer_(aligned_up(Bytes{sizeof(std::uint64_t) +
                                  static_cast<std::uint64_t>(max_experts(ranks, experts)) * sizeof(std::int32_t)},
                            line)) {}

    [[nodiscard]] constexpr Bytes offer_bytes() const { return offer_; }
    [[nodiscard]] constexpr Bytes offer(std::int32_t source) const {
        return offer_ * static_cast<std::uint64_t>(source);
    }
    [[nodiscard]] constexpr Bytes read(std::int32_t reader) const { return offer(ranks_) + lines(reader); }
    [[nodiscard]] constexpr Bytes can_read(std::int32_t reader) const { return read(reader) + Bytes{8}; }
    [[nodiscard]] constexpr Bytes total() const { return offer(ranks_) + lines(ranks_); }

private:
    static constexpr std::int32_t max_experts(std::int32_t ranks, std::int32_t experts) {
        return ExpertPlacement(experts, ranks).local_experts(0);
    }
    static constexpr Bytes lines(std::int32_t count) { return Bytes{line * static_cast<std::uint64_t>(count)}; }

    std::int32_t ranks_;
    Bytes offer_;
};

// A block of that layout; no memory: no row is read in place.
struct InPlaceMemory {
    std::byte* block = nullptr;
    InPlaceLayout layout{1, 1};

    [[nodiscard]] bool any() const { return block != nullptr; }
    [[nodiscard]] std::uint64_t* word(Bytes at) const { return reinterpret_cast<std::uint64_t*>(block + at.value()); }
};

// The sender's part.

struct OfferInPlace {
    InPlaceMemory memory;
    const std::byte* offers = nullptr;  // [ranks] to put, of offer_bytes each; null: x is not offered

    [[nodiscard]] bool any() const { return offers != nullptr; }
};

// Puts the offer, or that there is none, before the signal of the rows. Mapped ranks only.
void put_offer(npu::Core& core, const OfferInPlace& offer, std::int32_t rank);

// The reader's part.

struct ReadInPlace {
    InPlaceMemory memory;
    bool offered = false;                   // this rank's own rows, to all
    const std::int32_t* experts = nullptr;  // [tokens, top_k] of this rank's tokens, of the layer; -1: no row
    const float* weights = nullptr;         // same shape
    const std::uint32_t* number = nullptr;  // same shape: the choice's row, from the first one of its fragment on
    std::int32_t top_k = 0;
    ExpertPlacement placement{1, 1};
    Bytes row;              // of x
    bool per_rank = false;  // one row per rank

    // The rank that returns a row: `id` is its expert, or with one row per rank the rank itself.
    [[nodiscard]] std::int32_t rank_of(std::int32_t id) const { return per_rank ? id : placement.rank_of(id); }
};

// Call it on each core when the signals of all ranks have arrived.
void fetch_offers(npu::Core& core, const ReadInPlace& in_place);

// True if the rank offers its rows in this call.
bool is_offered(npu::Core& core, const ReadInPlace& in_place, std::int32_t rank);

// Adds a row that its rank offers: of the choice `slot`, token * top_k + k; or with one row per rank the experts' rows
// that the rank `id` would add up. `slot` is then that of the row that it would return, of a token with `width` slots.
void add_offered(npu::Core& core, const ReadInPlace& in_place, std::uint64_t slot, std::uint64_t width, std::int32_t id,
                 WeightedRows& rows);

}  // namespace npushmem::moe
