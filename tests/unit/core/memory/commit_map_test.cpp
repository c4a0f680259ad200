#include "core/memory/commit_map.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Range = CommitMap::Range;
constexpr std::uint64_t unit = CommitMap::unit;

TEST(CommitMap, AsksForWholeUnitsThatAreNotThereYet) {
    CommitMap map(10 * unit);
    EXPECT_THAT(map.missing(10, 20), ElementsAre(Range{0, unit}));
    map.mark({unit, 2 * unit}, true);
    EXPECT_THAT(map.missing(0, 5 * unit), ElementsAre(Range{0, unit}, Range{3 * unit, 2 * unit}));
    EXPECT_THAT(map.missing(unit + 1, unit), IsEmpty());
    EXPECT_EQ(map.committed_bytes(), 2 * unit);
}

TEST(CommitMap, ARangeAcrossABorderNeedsBothUnits) {
    CommitMap map(10 * unit);
    EXPECT_THAT(map.missing(unit - 1, 2), ElementsAre(Range{0, 2 * unit}));
}

TEST(CommitMap, OnlyWholeUnitsInsideAreGivenBack) {
    EXPECT_EQ(CommitMap::inside(1, 3 * unit), (Range{unit, 2 * unit}));
    EXPECT_EQ(CommitMap::inside(0, 3 * unit), (Range{0, 3 * unit}));
    EXPECT_EQ(CommitMap::inside(1, unit).bytes, 0U);
}

}  // namespace
}  // namespace npushmem
