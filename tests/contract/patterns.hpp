// SPDX-License-Identifier: BSD-3-Clause
// Byte patterns that identify their origin.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace npushmem::contract {

// A sequence that differs for each `salt` and does not repeat within a page.
inline std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t salt) {
    std::vector<std::byte> out(bytes);
    std::uint64_t state = salt * 0x9e3779b97f4a7c15U + 1;
    for (auto& byte : out) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        byte = static_cast<std::byte>(state >> 56);
    }
    return out;
}

inline bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

// A word that the transport may be writing. Acquire: pairs with the release of the flag or signal.
inline std::uint64_t word_at(std::span<std::byte> memory, std::size_t offset) {
    auto* word = reinterpret_cast<std::uint64_t*>(memory.data() + offset);
    return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
}

inline void set_word(std::span<std::byte> memory, std::size_t offset, std::uint64_t value) {
    auto* word = reinterpret_cast<std::uint64_t*>(memory.data() + offset);
    std::atomic_ref<std::uint64_t>(*word).store(value, std::memory_order_release);  // pairs with word_at
}

}  // namespace npushmem::contract
