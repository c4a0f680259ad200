#include "core/base/rail_pairs.hpp"

#include <gmock/gmock.h>

#include <random>
#include <set>

namespace npushmem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<RailId> numbered(const std::vector<unsigned>& numbers, bool given = false) {
    std::vector<RailId> out;
    for (const unsigned number : numbers) out.push_back({number, given, {}});
    return out;
}

// 10.0.<subnet>.<host>/24, as GIDs have it.
RailId in_subnet(unsigned number, std::uint8_t subnet, std::uint8_t host = 1) {
    RailId out{number, false, {{}, 120}};
    out.subnet.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, subnet, host};
    return out;
}

std::vector<RailPair> pairs(const std::vector<RailId>& mine, const std::vector<RailId>& theirs) {
    return pair_rails(0, mine, 1, theirs);
}

RailPair pair(std::size_t mine, std::size_t theirs) { return {mine, theirs}; }

TEST(PairRails, PairsEqualNumbersWhateverTheirPlace) {
    EXPECT_THAT(pairs(numbered({0, 1}), numbered({0, 1})), ElementsAre(pair(0, 0), pair(1, 1)));
    EXPECT_THAT(pairs(numbered({0, 1}), numbered({1, 0})), ElementsAre(pair(0, 1), pair(1, 0)));
    EXPECT_THAT(pairs(numbered({0, 1, 2}), numbered({2, 1})), ElementsAre(pair(1, 1), pair(2, 0)));
}

TEST(PairRails, LeavesOutWhatHasNoCounterpartWhereThereIsACommonRail) {
    EXPECT_THAT(pairs(numbered({0, 1}), numbered({1, 2})), ElementsAre(pair(1, 0)));
}

TEST(PairRails, PairsInOrderWithoutACommonRail) {
    EXPECT_THAT(pairs(numbered({0, 1, 2}), numbered({7, 8})), ElementsAre(pair(0, 0), pair(1, 1)));
    EXPECT_THAT(pairs(numbered({0}, true), numbered({1}, true)), ElementsAre(pair(0, 0)));
}

TEST(PairRails, OneSubnetIsOneRailEvenIfTheNumbersDiffer) {
    // The first NIC of the second host is missing, so that its numbers are lower by one.
    EXPECT_THAT(pairs({in_subnet(0, 10), in_subnet(1, 11), in_subnet(2, 12)}, {in_subnet(0, 11), in_subnet(1, 12)}),
                ElementsAre(pair(1, 0), pair(2, 1)));
    EXPECT_THAT(pairs({in_subnet(0, 10), in_subnet(1, 11)}, {in_subnet(0, 11), in_subnet(1, 10)}),
                ElementsAre(pair(0, 1), pair(1, 0)));
}

TEST(PairRails, WithinOneSubnetNumbersDecide) {
    EXPECT_THAT(pairs({in_subnet(0, 10), in_subnet(1, 10)}, {in_subnet(1, 10), in_subnet(0, 10)}),
                ElementsAre(pair(0, 1), pair(1, 0)));
    EXPECT_THAT(pairs({in_subnet(0, 10)}, {in_subnet(3, 10)}), ElementsAre(pair(0, 0)));
}

TEST(PairRails, NumbersDecideBetweenSubnetsThatARouterMayConnect) {
    EXPECT_THAT(pairs({in_subnet(0, 10), in_subnet(1, 11)}, {in_subnet(1, 21), in_subnet(0, 20)}),
                ElementsAre(pair(0, 1), pair(1, 0)));
}

TEST(PairRails, LengthsOfSubnetsCount) {
    RailId wide = in_subnet(1, 10, 2);
    wide.subnet.bits = 112;
    EXPECT_EQ(pairing_reason(in_subnet(0, 10), wide), "rails 0 and 1, no rail in common");
    RailId whole = in_subnet(1, 10);
    whole.subnet.bits = 128;
    EXPECT_EQ(pairing_reason(whole, whole), "rail 1 on both ends");
}

TEST(PairRails, TheUsersNumbersComeBeforeSubnets) {
    auto mine = std::vector{in_subnet(0, 10), in_subnet(1, 11)};
    auto theirs = std::vector{in_subnet(1, 10), in_subnet(0, 11)};
    for (auto* pe : {&mine, &theirs})
        for (RailId& each : *pe) each.given = true;
    EXPECT_THAT(pairs(mine, theirs), ElementsAre(pair(0, 1), pair(1, 0)));
    theirs[0].given = theirs[1].given = false;
    EXPECT_THAT(pairs(mine, theirs), ElementsAre(pair(0, 1), pair(1, 0)));
}

TEST(PairRails, PortsOfOneNumberArePairedInOrder) {
    EXPECT_THAT(pairs(numbered({5, 5}), numbered({5, 5, 5})), ElementsAre(pair(0, 0), pair(1, 1)));
}

TEST(PairRails, IsEmptyWithoutPorts) {
    EXPECT_THAT(pairs({}, numbered({1})), IsEmpty());
    EXPECT_THAT(pairs(numbered({1}), {}), IsEmpty());
}

TEST(PairRails, SaysWhy) {
    EXPECT_EQ(pairing_reason({2, false, {}}, {2, false, {}}), "rail 2 on both ends");
    EXPECT_EQ(pairing_reason({2, false, {}}, {4, false, {}}), "rails 2 and 4, no rail in common");
    EXPECT_EQ(pairing_reason(in_subnet(2, 1), in_subnet(4, 1)), "rails 2 and 4 in one subnet");
}

// Otherwise one PE relies on a connection that the other does not make.
TEST(PairRails, BothPesGetTheSamePairsInTheSameOrder) {
    std::mt19937 random(7);
    const auto any_pe = [&random] {
        std::vector<RailId> out(1 + random() % 5);
        for (RailId& each : out) {
            each = in_subnet(static_cast<unsigned>(random() % 5), static_cast<std::uint8_t>(random() % 3));
            each.given = random() % 4 == 0;
            if (random() % 3 == 0) each.subnet.bits = 0;
        }
        return out;
    };
    for (int i = 0; i < 2000; ++i) {
        const auto one = any_pe();
        const auto other = any_pe();
        const auto here = pair_rails(3, one, 8, other);
        auto there = pair_rails(8, other, 3, one);
        for (RailPair& each : there) std::swap(each.mine, each.theirs);
        ASSERT_EQ(here, there);
        ASSERT_FALSE(here.empty());
        std::set<std::size_t> mine;
        std::set<std::size_t> theirs;
        for (const auto& [a, b] : here) EXPECT_TRUE(mine.insert(a).second && theirs.insert(b).second);
    }
}

}  // namespace
}  // namespace npushmem
