// What all ranks must agree on before a combine.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/moe/copy_route.hpp"
#include "core/moe/element.hpp"
#include "core/moe/routing.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

// direct: each row is put straight into its slot at the receiver. stream: rows go through a ring per pair of ranks, and
// the receiver puts them into slots of its own; between ranks of one host only.
enum class CombineMode : std::int32_t { direct = 0, stream = 2 };

struct CombineConfig {
    std::int32_t experts = 0;
    std::int32_t top_k = 0;
    std::int64_t hidden = 0;      // elements of a row
    std::int64_t max_tokens = 0;  // of one rank in one call
    ElementType input = ElementType::bfloat16;
    ElementType output = ElementType::bfloat16;
    CombineMode mode = CombineMode::direct;
    std::int64_t capacity = 0;            // most rows that a dispatch may bring to one rank; 0: no dispatch
    std::int64_t ring_rows = 0;           // mode stream: of each ring; 0: about 256 KiB
    bool audit = false;                   // count the rows put into each slot, and check them after every call
    CopyRoute route = CopyRoute::direct;  // each rank's own choice
    std::chrono::nanoseconds timeout{0};  // of the wait for one rank; 0: the device's. Each rank's own choice

    [[nodiscard]] Bytes row_bytes() const {
        return bytes_of(Elements{static_cast<std::uint64_t>(hidden)}, size_of(input));
    }
    [[nodiscard]] Rows slots() const {
        return rows_of(Tokens{static_cast<std::uint64_t>(max_tokens)}, static_cast<std::uint32_t>(top_k));
    }
    // Refuses values that are out of range, naming the first one and its limits.
    [[nodiscard]] Status validate() const;
};

// check_routing, and no more tokens than max_tokens.
Status check_own_routing(const CombineConfig& config, const RankRouting& own, std::int32_t rank);

}  // namespace npushmem::moe
