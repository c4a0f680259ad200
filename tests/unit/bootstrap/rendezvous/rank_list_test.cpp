#include "bootstrap/rendezvous/rank_list.hpp"

#include <gtest/gtest.h>

namespace npushmem::rendezvous {
namespace {

TEST(RankList, JoinsRuns) {
    EXPECT_EQ(rank_list({5}), "rank 5");
    EXPECT_EQ(rank_list({5, 7}), "ranks 5, 7");
    EXPECT_EQ(rank_list({5, 6}), "ranks 5, 6");
    EXPECT_EQ(rank_list({0, 1, 2, 4, 6, 7, 8, 9}), "ranks 0-2, 4, 6-9");
}

TEST(RankList, CutsLongLists) {
    std::vector<int> even;
    for (int rank = 0; rank < 100; rank += 2) even.push_back(rank);
    EXPECT_EQ(rank_list(even), "ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 38 more");
}

}  // namespace
}  // namespace npushmem::rendezvous
