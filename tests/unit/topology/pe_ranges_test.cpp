#include "topology/pe_ranges.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace npushmem::topology {
namespace {

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

TEST(PeRanges, CountsWhatIsTooMuch) { EXPECT_EQ(text_of({0, 2, 5, 7, 11, 13, 18, 20, 30}), "0,2,5,7,11,13 +3 more"); }

TEST(PeRanges, ReachesTheLargestNumber) { EXPECT_EQ(text_of({4294967294U, 4294967295U}), "4294967294-4294967295"); }

}  // namespace
}  // namespace npushmem::topology
