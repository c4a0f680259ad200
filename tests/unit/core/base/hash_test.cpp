// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/hash.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace npushmem {
namespace {

// The hash's published test vectors.
TEST(Hash, MatchesPublishedVectors) {
    EXPECT_EQ(hash_bytes(""), 0xcbf29ce484222325U);
    EXPECT_EQ(hash_bytes("a"), 0xaf63dc4c8601ec8cU);
    EXPECT_EQ(hash_bytes("foobar"), 0x85944171f73967e8U);
    EXPECT_EQ(fnv1a<std::uint32_t>(std::string_view("")), 0x811c9dc5U);
    EXPECT_EQ(fnv1a<std::uint32_t>(std::string_view("a")), 0xe40c292cU);
    EXPECT_EQ(fnv1a<std::uint32_t>(std::string_view("foobar")), 0xbf9cf968U);
}

TEST(Hash, TreatsBytesAsUnsigned) {
    const std::string_view text = "\x80\xff";
    EXPECT_EQ(hash_bytes(text), fnv1a<std::uint64_t>(std::as_bytes(std::span(text))));
}

TEST(Hash, TakesOneStepForEachInteger) {
    EXPECT_EQ(fnv1a<std::uint32_t>(std::vector<int>{'a'}), fnv1a<std::uint32_t>(std::string_view("a")));
    EXPECT_NE(fnv1a<std::uint32_t>(std::vector<int>{1, 2}), fnv1a<std::uint32_t>(std::vector<int>{2, 1}));
}

}  // namespace
}  // namespace npushmem
