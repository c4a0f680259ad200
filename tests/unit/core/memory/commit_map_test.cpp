#include "core/memory/commit_map.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Committed = CommitMap::Range;
constexpr std::uint64_t commit_unit = CommitMap::unit;

TEST(CommitMap, AsksForWholeUnitsThatAreNotThereYet) {
    CommitMap map(10 * commit_unit);
    EXPECT_THAT(map.missing(10, 20), ElementsAre(Committed{0, commit_unit}));
    map.mark({commit_unit, 2 * commit_unit}, true);
    EXPECT_THAT(map.missing(0, 5 * commit_unit),
                ElementsAre(Committed{0, commit_unit}, Committed{3 * commit_unit, 2 * commit_unit}));
    EXPECT_THAT(map.missing(commit_unit + 1, commit_unit), IsEmpty());
    EXPECT_EQ(map.committed_bytes(), 2 * commit_unit);
}

TEST(CommitMap, ARangeAcrossABorderNeedsBothUnits) {
    CommitMap map(10 * commit_unit);
    EXPECT_THAT(map.missing(commit_unit - 1, 2), ElementsAre(Committed{0, 2 * commit_unit}));
}

TEST(CommitMap, OnlyWholeUnitsInsideAreGivenBack) {
    EXPECT_EQ(CommitMap::inside(1, 3 * commit_unit), (Committed{commit_unit, 2 * commit_unit}));
    EXPECT_EQ(CommitMap::inside(0, 3 * commit_unit), (Committed{0, 3 * commit_unit}));
    EXPECT_EQ(CommitMap::inside(1, commit_unit).bytes, 0U);
}

}  // namespace
}  // namespace npushmem
