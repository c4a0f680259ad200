#include "bootstrap/rendezvous/tree.hpp"

#include <algorithm>

namespace npushmem::rendezvous {
namespace {

// At most `radix` ranges that differ in size by one at most.
std::vector<TreeRange> children_of(const TreeRange& range, int radix) {
    std::vector<TreeRange> children;
    const int below = range.size() - 1;
    const int count = std::min(below, radix);
    int first = range.first + 1;
    for (int i = 0; i < count; ++i) {
        const int size = below / count + (i < below % count ? 1 : 0);
        children.push_back({first, first + size});
        first += size;
    }
    return children;
}

}  // namespace

int tree_height(TreeRange range, int radix) {
    int height = 0;
    for (; range.size() > 1; ++height) range = children_of(range, radix).front();  // none of its siblings is larger
    return height;
}

TreePlace tree_place(int rank, int nranks, int radix) {
    TreePlace place{-1, {0, nranks}, children_of({0, nranks}, radix)};
    while (place.own.first != rank) {
        const auto holds = [rank](const TreeRange& range) { return rank < range.end; };
        place.parent = place.own.first;
        place.own = *std::ranges::find_if(place.children, holds);
        place.children = children_of(place.own, radix);
    }
    return place;
}

}  // namespace npushmem::rendezvous
