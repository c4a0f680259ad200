// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/members.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace npushmem {

namespace {

std::vector<int> pes_of(const Members& members) {
    std::vector<int> pes;
    for (int i = 0; i < members.count(); ++i) pes.push_back(members.at(i));
    return pes;
}

TEST(Members, AtEqualDistancesNeedNoList) {
    const Members members(PeRange{7, -2, 3});
    EXPECT_EQ(pes_of(members), (std::vector<int>{7, 5, 3}));
    EXPECT_EQ(members.index_of(5), 1);
    EXPECT_EQ(members.index_of(3), 2);
    for (const int other : {1, 4, 6, 9, -1}) EXPECT_EQ(members.index_of(other), -1) << other;
    EXPECT_EQ(members.list_hash(), 0U);
}

TEST(Members, OfAListAtEqualDistancesBecomeARange) {
    const Members members = Members::listed({1, 4, 7});
    EXPECT_EQ(members.range().table, nullptr);
    EXPECT_EQ(members.range().stride, 3);
    EXPECT_EQ(Members::listed({6}).range().table, nullptr);
    EXPECT_EQ(Members::listed({6, 2}).range().stride, -4);
}

// Every order of every set of PEs up to 5.
TEST(Members, OfAListAreFoundByIndexAndByPe) {
    for (int n = 1; n <= 5; ++n) {
        std::vector<int> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 3);
        do {
            const Members members = Members::listed(order);
            ASSERT_EQ(pes_of(members), order);
            for (int i = 0; i < n; ++i) ASSERT_EQ(members.index_of(order[static_cast<std::size_t>(i)]), i);
            ASSERT_EQ(members.index_of(2), -1);
            ASSERT_EQ(members.index_of(3 + n), -1);
        } while (std::ranges::next_permutation(order).found);
    }
}

TEST(Members, AreSplitByIndex) {
    const Members members = Members::listed({9, 2, 7, 0, 4});
    EXPECT_EQ(pes_of(members.every(0, 2, 3)), (std::vector<int>{9, 7, 4}));
    EXPECT_EQ(pes_of(members.every(4, -1, 5)), (std::vector<int>{4, 0, 7, 2, 9}));
    EXPECT_EQ(members.every(1, 2, 2).range().table, nullptr);
    EXPECT_EQ(pes_of(Members(PeRange{1, 3, 4}).every(3, -2, 2)), (std::vector<int>{10, 4}));
}

TEST(Members, KeepTheirListAsLongAsACopyLives) {
    Members copy;
    {
        const Members members = Members::listed({5, 0, 3});
        copy = members;
    }
    EXPECT_EQ(pes_of(copy), (std::vector<int>{5, 0, 3}));
    EXPECT_EQ(copy.range().at(2), 3);
}

TEST(Members, HaveAHashByPeAndOrder) {
    EXPECT_EQ(Members::listed({5, 0, 3}).list_hash(), Members::listed({5, 0, 3}).list_hash());
    EXPECT_NE(Members::listed({5, 0, 3}).list_hash(), Members::listed({5, 3, 0}).list_hash());
}

TEST(Members, AreDescribed) {
    EXPECT_EQ(Members(PeRange::one(4)).text(), "PE 4");
    EXPECT_EQ(Members(PeRange{1, 2, 4}).text(), "PEs 1 to 7, every 2");
    EXPECT_EQ(Members::listed({5, 0, 3}).text(), "PEs 5, 0, 3");
    std::vector<int> many(20);
    std::iota(many.begin(), many.end(), 0);
    std::swap(many.front(), many.back());
    EXPECT_EQ(Members::listed(many).text(), "PEs 19, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 4 more");
}

}  // namespace

}  // namespace npushmem
