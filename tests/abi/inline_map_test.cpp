// SPDX-License-Identifier: BSD-3-Clause
// The binary form of the structure that compiled programs read (npushmem/inline/map.h): no member moves.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "core/api/contexts.hpp"
#include "npushmem/inline/map.h"

namespace npushmem {
namespace {

#define MEMBER(member, offset, bytes)                                                                              \
    static_assert(                                                                                                 \
        offsetof(npushmemx_inline_map_t, member) == (offset) && sizeof(npushmemx_inline_map_t::member) == (bytes), \
        "npushmemx_inline_map_t::" #member                                                                         \
        " has moved: programs were compiled with its offset; export another form by another "                      \
        "name, and this one with zeros")
MEMBER(heap, 0, 8);
MEMBER(heap_bytes, 8, 8);
MEMBER(peers, 16, 8);
MEMBER(stride, 24, 8);
MEMBER(first_pe, 32, 4);
MEMBER(mapped_pes, 36, 4);
MEMBER(all_mapped, 40, 4);
MEMBER(reserved, 44, 4);
#undef MEMBER
static_assert(sizeof(npushmemx_inline_map_t) == 48 && std::is_standard_layout_v<npushmemx_inline_map_t>);

// The address by the documented rule, beside that of the library's own fast path.
TEST(InlineMap, HasTheAddressesOfTheFastPath) {
    alignas(64) std::byte memory[256];
    FastMap map;
    map.heap = reinterpret_cast<std::uintptr_t>(memory) + 64;
    map.heap_bytes = 64;
    map.peers = memory;
    map.stride = 64;
    map.first_pe = 4;
    map.mapped_pes = 4;
    // As a compiled program reads it: by offsets alone.
    npushmemx_inline_map_t seen;
    std::memcpy(&seen, static_cast<const void*>(&map), sizeof seen);
    for (std::uint32_t pe = 4; pe < 8; ++pe)
        EXPECT_EQ(static_cast<std::byte*>(seen.peers) + (pe - seen.first_pe) * seen.stride + 8,
                  map.address(memory + 64 + 8, static_cast<int>(pe)));
}

TEST(InlineMap, IsEmptyBeforeInit) {
    const npushmemx_inline_map_t empty{};
    EXPECT_EQ(static_cast<const void*>(npushmemx_inline_v1), static_cast<const void*>(&api::fast));
    EXPECT_EQ(std::memcmp(npushmemx_inline_v1, &empty, sizeof empty), 0);
}

}  // namespace
}  // namespace npushmem
