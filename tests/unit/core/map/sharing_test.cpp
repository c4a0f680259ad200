#include "core/map/sharing.hpp"

#include <gtest/gtest.h>

namespace npushmem {
namespace {

MappingMatrix everybody(int pes) {
    return {static_cast<std::size_t>(pes), std::vector<bool>(static_cast<std::size_t>(pes), true)};
}

void cut(MappingMatrix& maps, int a, int b) {
    maps[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = false;
    maps[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = false;
}

TEST(Sharing, IsOfAllWhereAllMapAll) { EXPECT_EQ(sharing_group(1, everybody(3)), (std::vector<int>{0, 1, 2})); }

TEST(Sharing, IsOfOneWhereNobodyMapsAnother) {
    MappingMatrix maps = everybody(3);
    cut(maps, 0, 1);
    cut(maps, 0, 2);
    cut(maps, 1, 2);
    for (const int me : {0, 1, 2}) EXPECT_EQ(sharing_group(me, maps), std::vector<int>{me});
}

TEST(Sharing, IsOfThoseWhoMapEachOther) {
    MappingMatrix maps = everybody(5);
    for (const int a : {0, 3, 4})
        for (const int b : {1, 2}) cut(maps, a, b);
    for (const int me : {0, 3, 4}) EXPECT_EQ(sharing_group(me, maps), (std::vector<int>{0, 3, 4}));
    for (const int me : {1, 2}) EXPECT_EQ(sharing_group(me, maps), (std::vector<int>{1, 2}));
}

// One link is down: all agree about who is with whom.
TEST(Sharing, IsAPartitionAlsoWhereItDoesNotGoOn) {
    MappingMatrix maps = everybody(4);
    cut(maps, 0, 1);
    for (const int me : {0, 2, 3}) EXPECT_EQ(sharing_group(me, maps), (std::vector<int>{0, 2, 3}));
    EXPECT_EQ(sharing_group(1, maps), std::vector<int>{1});
}

TEST(Sharing, NeedsBothSides) {
    MappingMatrix maps = everybody(2);
    maps[1][0] = false;
    EXPECT_EQ(sharing_group(0, maps), std::vector<int>{0});
    EXPECT_EQ(sharing_group(1, maps), std::vector<int>{1});
}

}  // namespace
}  // namespace npushmem
