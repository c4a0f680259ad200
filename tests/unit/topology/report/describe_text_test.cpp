// SPDX-License-Identifier: BSD-3-Clause
#include "topology/report/describe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace npushmem::topology {
namespace {

TEST(RenderTable, AlignsColumnsAndTrimsLines) {
    EXPECT_EQ(render_table({{"PE", "NIC", "why"}, {"10", "mlx5_0:1", ""}, {"2"}}, 2),
              "  PE  NIC       why\n"
              "  10  mlx5_0:1\n"
              "  2\n");
    EXPECT_EQ(render_table({}, 2), "");
}

std::string text_of(const std::vector<std::uint32_t>& pes) { return pe_ranges(pes); }

TEST(PeRanges, ShortensNeighbours) {
    EXPECT_EQ(text_of({}), "");
    EXPECT_EQ(text_of({3}), "3");
    EXPECT_EQ(text_of({3, 4}), "3-4");
    EXPECT_EQ(text_of({0, 1, 2, 3, 8, 10}), "0-3,8,10");
}

TEST(PeRanges, ShortensEveryNth) {
    EXPECT_EQ(text_of({0, 2}), "0,2");
    EXPECT_EQ(text_of({0, 8, 16}), "0,8..16");
    EXPECT_EQ(text_of({1, 2, 5, 8, 11}), "1-2,5,8..11");
}

TEST(PeRanges, CountsTheOmittedNumbers) {
    EXPECT_EQ(text_of({0, 2, 5, 7, 11, 13, 18, 20, 30}), "0,2,5,7,11,13 +3 more");
}

TEST(PeRanges, ReachesTheLargestNumber) { EXPECT_EQ(text_of({4294967294U, 4294967295U}), "4294967294-4294967295"); }

}  // namespace
}  // namespace npushmem::topology
