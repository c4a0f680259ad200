// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/collectives.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace npushmem::rendezvous {

namespace {

// What must hold at one place of the tree, seen from the place itself and from its children.
void check_place(int rank, int nranks, int radix) {
    const TreePlace place = tree_place(rank, nranks, radix);
    ASSERT_EQ(place.own.first, rank);
    ASSERT_LE(place.children.size(), static_cast<std::size_t>(radix));
    int next = rank + 1;  // the children's ranges follow each other and fill the rank's own
    for (const TreeRange& child : place.children) {
        ASSERT_EQ(child.first, next);
        ASSERT_GT(child.size(), 0);
        next = child.end;
        const TreePlace below = tree_place(child.first, nranks, radix);
        ASSERT_EQ(below.parent, rank);
        ASSERT_EQ(below.own, child);
    }
    ASSERT_EQ(next, place.own.end);
}

TEST(TreePlace, EveryRankHasItsPlaceForAllSmallSizes) {
    for (int radix = 1; radix <= 8; ++radix) {
        for (int nranks = 1; nranks <= 64; ++nranks) {
            ASSERT_EQ(tree_place(0, nranks, radix).parent, -1);
            ASSERT_EQ(tree_place(0, nranks, radix).own, (TreeRange{0, nranks}));
            for (int rank = 0; rank < nranks; ++rank) check_place(rank, nranks, radix);
        }
    }
}

TEST(TreeHeight, IsOneMoreThanThatOfTheHighestChild) {
    for (int radix = 1; radix <= 8; ++radix) {
        for (int nranks = 1; nranks <= 64; ++nranks) {
            int highest = -1;
            for (const TreeRange& child : tree_place(0, nranks, radix).children)
                highest = std::max(highest, tree_height(child, radix));
            ASSERT_EQ(tree_height({0, nranks}, radix), highest + 1) << nranks << " radix " << radix;
        }
    }
}

TEST(TreePlace, SiblingsDifferByOneAtMost) {
    for (int nranks = 2; nranks <= 64; ++nranks) {
        const auto children = tree_place(0, nranks, 4).children;
        const auto [least, most] = std::ranges::minmax(children, {}, &TreeRange::size);
        EXPECT_LE(most.size() - least.size(), 1) << nranks;
    }
}

int depth(int rank, int nranks) {
    const int parent = tree_place(rank, nranks).parent;
    return parent < 0 ? 0 : 1 + depth(parent, nranks);
}

TEST(TreePlace, IsShallowForThousandsOfRanks) {
    constexpr int nranks = 4096;
    int deepest = 0;
    for (int rank = 0; rank < nranks; ++rank) deepest = std::max(deepest, depth(rank, nranks));
    EXPECT_LE(deepest, 7);
}

// A collective of a million ranks, message by message: what goes up reaches the root once from every rank, and nobody
// talks to more than the radix and a parent.
TEST(TreePlace, AMillionRanksAreGatheredOnceEachInFewSteps) {
    constexpr int nranks = 1'000'000;
    std::vector<int> gathered(nranks, 1);            // ranks whose data this rank holds
    std::vector<int> steps(nranks, 0);               // messages that follow each other until it holds them
    for (int rank = nranks - 1; rank > 0; --rank) {  // children have higher numbers than their parents
        const TreePlace place = tree_place(rank, nranks);
        ASSERT_LE(place.children.size(), static_cast<std::size_t>(tree_radix));
        ASSERT_EQ(gathered[static_cast<std::size_t>(rank)], place.own.size()) << rank;
        const auto parent = static_cast<std::size_t>(place.parent);
        gathered[parent] += gathered[static_cast<std::size_t>(rank)];
        steps[parent] = std::max(steps[parent], steps[static_cast<std::size_t>(rank)] + 1);
    }
    EXPECT_EQ(gathered[0], nranks);
    EXPECT_LE(steps[0], 10);
}

}  // namespace

}  // namespace npushmem::rendezvous
