// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include <random>
#include <set>

#include "core/base/nic_rails.hpp"

namespace npushmem {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<PortName> ports{{"mlx5_0", 1}, {"mlx5_0", 2}, {"mlx5_1", 1}};

Result<std::vector<std::optional<unsigned>>> given_by(const std::string& text) {
    const auto entries = parse_nic_rails(text);
    if (!entries.ok()) return entries.status();
    return configured_rails(entries.value(), ports);
}

TEST(NicRails, GivesPortsTheirRails) {
    EXPECT_THAT(given_by("mlx5_0:2=7, mlx5_1=255").value(), ElementsAre(std::nullopt, 7U, 255U));
    EXPECT_THAT(given_by("mlx5_0=3").value(), ElementsAre(3U, 3U, std::nullopt));
    EXPECT_THAT(given_by("").value(), ElementsAre(std::nullopt, std::nullopt, std::nullopt));
    EXPECT_THAT(parse_nic_rails("  ").value(), IsEmpty());
}

struct Mistake {
    const char* text;
    const char* entry;
    const char* message;
};

class NicRailsMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(NicRailsMistakes, ReportTheEntry) {
    const Status refused = given_by(GetParam().text).status();
    EXPECT_EQ(refused.code(), Code::config);
    EXPECT_THAT(refused.message(), AllOf(HasSubstr(std::string("NPUSHMEM_NIC_RAILS entry ") + GetParam().entry),
                                         HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    All, NicRailsMistakes,
    ::testing::Values(Mistake{"mlx5_0:1=0,mlx5_1", "2 \"mlx5_1\"", "write name=rail or name:port=rail"},
                      Mistake{"mlx5_0=0,,mlx5_1=1", "2 \"\"", "write name=rail"},
                      Mistake{"=3", "1 \"=3\"", "write name=rail"},
                      Mistake{"mlx5_0=1=2", "1 \"mlx5_0=1=2\"", "write name=rail"},
                      Mistake{"mlx5_0:1:2=3", "1 \"mlx5_0:1:2=3\"", "write name=rail"},
                      Mistake{"mlx5_0:one=3", "1 \"mlx5_0:one=3\"", "the port:"},
                      Mistake{"mlx5_0:0=3", "1 \"mlx5_0:0=3\"", "the port:"},
                      Mistake{"mlx5_0=", "1 \"mlx5_0=\"", "the rail:"},
                      Mistake{"mlx5_0=-1", "1 \"mlx5_0=-1\"", "between 0 and 255"},
                      Mistake{"mlx5_0=256", "1 \"mlx5_0=256\"", "between 0 and 255"},
                      Mistake{"mlx5_0=1,mlx_1=2", "2 \"mlx_1=2\"", "did you mean \"mlx5_1\"?"},
                      Mistake{"eth0=1", "1 \"eth0=1\"", "this host has mlx5_0:1, mlx5_0:2, mlx5_1:1"},
                      Mistake{"mlx5_1:2=1", "1 \"mlx5_1:2=1\"", "mlx5_1 has no port 2; it has port 1"},
                      Mistake{"mlx5_0:2=1,mlx5_0=2", "2 \"mlx5_0=2\"", "an earlier entry names mlx5_0:2"}));

}  // namespace

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<RailId> numbered(const std::vector<unsigned>& numbers, bool given = false) {
    std::vector<RailId> out;
    for (const unsigned number : numbers) out.push_back({number, given, {}});
    return out;
}

// 10.0.<subnet>.<host>/24 in the form of a GID.
RailId in_subnet(unsigned number, std::uint8_t subnet, std::uint8_t host = 1) {
    RailId out{number, false, {{}, 120}};
    out.subnet.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, subnet, host};
    return out;
}

std::vector<RailPair> pairs(const std::vector<RailId>& mine, const std::vector<RailId>& theirs) {
    return pair_rails(0, mine, 1, theirs);
}

RailPair pair(std::size_t mine, std::size_t theirs) { return {mine, theirs}; }

TEST(PairRails, PairsEqualNumbersAtAnyPosition) {
    EXPECT_THAT(pairs(numbered({0, 1}), numbered({0, 1})), ElementsAre(pair(0, 0), pair(1, 1)));
    EXPECT_THAT(pairs(numbered({0, 1}), numbered({1, 0})), ElementsAre(pair(0, 1), pair(1, 0)));
    EXPECT_THAT(pairs(numbered({0, 1, 2}), numbered({2, 1})), ElementsAre(pair(1, 1), pair(2, 0)));
}

TEST(PairRails, SkipsUnmatchedPortsIfThereIsACommonRail) {
    EXPECT_THAT(pairs(numbered({0, 1}), numbered({1, 2})), ElementsAre(pair(1, 0)));
}

TEST(PairRails, PairsInOrderWithoutACommonRail) {
    EXPECT_THAT(pairs(numbered({0, 1, 2}), numbered({7, 8})), ElementsAre(pair(0, 0), pair(1, 1)));
    EXPECT_THAT(pairs(numbered({0}, true), numbered({1}, true)), ElementsAre(pair(0, 0)));
}

TEST(PairRails, OneSubnetIsOneRailEvenIfTheNumbersDiffer) {
    // The first NIC of the second host is missing, so its numbers are lower by one.
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

TEST(PairRails, TheUsersNumbersPrecedeSubnets) {
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

TEST(PairRails, DescribesTheReason) {
    EXPECT_EQ(pairing_reason({2, false, {}}, {2, false, {}}), "rail 2 on both ends");
    EXPECT_EQ(pairing_reason({2, false, {}}, {4, false, {}}), "rails 2 and 4, no rail in common");
    EXPECT_EQ(pairing_reason(in_subnet(2, 1), in_subnet(4, 1)), "rails 2 and 4 in one subnet");
}

// Otherwise one PE would use a connection that the other does not make.
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
