// The words that single-word operations walk over: few enough to stay in the nearest cache, and enough that no
// operation has to wait for the one before it on the same word.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "bench/engine/point.hpp"

namespace npushmem::bench {

inline constexpr std::uint64_t ring_words = 256;
inline constexpr std::size_t ring_bytes = ring_words * sizeof(std::uint64_t);

// The same in memory of this process alone, which the point keeps.
inline std::uint64_t* private_ring(Point& point) {
    auto ring = std::make_shared<std::array<std::uint64_t, ring_words>>();
    point.memory.push_back(ring);
    return ring->data();
}

}  // namespace npushmem::bench
