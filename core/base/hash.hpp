// SPDX-License-Identifier: BSD-3-Clause
// A stable hash: equal on every machine and in every version. Not for secrets.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace npushmem {

// FNV-1a over a sequence of integers or bytes, one step for each element. `Hash` is an unsigned type of 32 or 64 bits.
template <class Hash, class Sequence>
[[nodiscard]] constexpr Hash fnv1a(const Sequence& sequence) {
    static_assert(std::is_same_v<Hash, std::uint32_t> || std::is_same_v<Hash, std::uint64_t>);
    constexpr bool is_wide = sizeof(Hash) == sizeof(std::uint64_t);
    constexpr auto prime = static_cast<Hash>(is_wide ? 0x100000001b3U : 0x01000193U);
    auto hash = static_cast<Hash>(is_wide ? 0xcbf29ce484222325U : 0x811c9dc5U);
    for (const auto element : sequence) {
        using Unsigned = std::make_unsigned_t<std::remove_const_t<decltype(element)>>;
        hash = (hash ^ static_cast<Hash>(static_cast<Unsigned>(element))) * prime;
    }
    return hash;
}

[[nodiscard]] constexpr std::uint64_t hash_bytes(std::string_view bytes) { return fnv1a<std::uint64_t>(bytes); }

// A bijection with well mixed bits (the finalizer of SplitMix64): similar numbers become unrelated ones.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

}  // namespace npushmem
