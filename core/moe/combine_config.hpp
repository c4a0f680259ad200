// What all ranks must agree on before a combine.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "core/moe/copy_route.hpp"
#include "core/moe/element.hpp"
#include "core/moe/ring/ring_shape.hpp"
#include "core/moe/routing.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

// direct: each row is put straight into its slot at the receiver. stream: rows go through a ring per pair of ranks, and
// the receiver puts them into slots of its own. chunked: as stream, but so many of a receiver's tokens at a time, which
// are added up before the next come, so that the slots are those of one chunk.
enum class CombineMode : std::int32_t { direct = 0, chunked = 1, stream = 2 };

constexpr std::string_view name_of(CombineMode mode) {
    switch (mode) {
        case CombineMode::direct: return "direct";
        case CombineMode::chunked: return "chunked";
        case CombineMode::stream: return "stream";
    }
    return "unknown";
}

struct CombineConfig {
    std::int32_t experts = 0;
    std::int32_t top_k = 0;
    std::int64_t hidden = 0;      // elements of a row
    std::int64_t max_tokens = 0;  // of one rank in one call
    ElementType input = ElementType::bfloat16;
    ElementType output = ElementType::bfloat16;
    CombineMode mode = CombineMode::direct;
    std::int64_t capacity = 0;   // most rows that a dispatch may bring to one rank; 0: no dispatch
    std::int64_t ring_rows = 0;  // of each ring; 0: about 256 KiB, in mode chunked two chunks
    RingPlace ring_place = RingPlace::receiver;
    std::int64_t chunk_tokens = 256;      // mode chunked: tokens of a chunk
    bool audit = false;                   // count the rows put into each slot, and check them after every call
    CopyRoute route = CopyRoute::direct;  // each rank's own choice
    std::chrono::nanoseconds timeout{0};  // of the wait for one rank; 0: the device's. Each rank's own choice

    [[nodiscard]] Bytes row_bytes() const {
        return bytes_of(Elements{static_cast<std::uint64_t>(hidden)}, size_of(input));
    }
    [[nodiscard]] Rows slots() const {
        return rows_of(Tokens{static_cast<std::uint64_t>(max_tokens)}, static_cast<std::uint32_t>(top_k));
    }
    // Through rings, that is.
    [[nodiscard]] bool streams() const { return mode != CombineMode::direct; }
    // Tokens that are received before they are added up, and how often that is done in a call.
    [[nodiscard]] Tokens chunk() const {
        const std::int64_t tokens = mode == CombineMode::chunked ? std::min(chunk_tokens, max_tokens) : max_tokens;
        return Tokens{static_cast<std::uint64_t>(tokens)};
    }
    [[nodiscard]] std::uint64_t chunks() const {
        return (static_cast<std::uint64_t>(max_tokens) + chunk().value() - 1) / chunk().value();
    }
    [[nodiscard]] Rows chunk_slots() const { return rows_of(chunk(), static_cast<std::uint32_t>(top_k)); }
    // Refuses values that are out of range, naming the first one and its limits.
    [[nodiscard]] Status validate() const;
};

// check_routing, and no more tokens than max_tokens.
Status check_own_routing(const CombineConfig& config, const RankRouting& own, std::int32_t rank);

}  // namespace npushmem::moe
