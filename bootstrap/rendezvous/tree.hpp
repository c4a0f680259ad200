// The tree that collectives run over: pure arithmetic, the same on every rank.
//
// The subtree of a rank is the contiguous range of ranks [rank, end). So what a subtree gathers is one contiguous piece
// of the result, and neighbours in rank, which mostly share a host, are neighbours in the tree. The root is rank 0; a
// rank's children split the rest of its range evenly.
#pragma once

#include <vector>

namespace npushmem::rendezvous {

constexpr int tree_radix = 4;

struct TreeRange {
    int first;  // the rank at the top of the subtree
    int end;    // one past its last rank

    [[nodiscard]] int size() const { return end - first; }
    friend bool operator==(const TreeRange&, const TreeRange&) = default;
};

struct TreePlace {
    int parent;  // -1 at the root
    TreeRange own;
    std::vector<TreeRange> children;
};

// Levels below the top of a subtree; 0 for a leaf.
[[nodiscard]] int tree_height(TreeRange range, int radix = tree_radix);

// 0 <= rank < nranks, radix >= 1.
[[nodiscard]] TreePlace tree_place(int rank, int nranks, int radix = tree_radix);

}  // namespace npushmem::rendezvous
