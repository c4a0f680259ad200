#include "topology/nic_pair.hpp"

#include <gmock/gmock.h>

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PeAssignment pe_with(const std::vector<std::uint32_t>& rails) {
    PeAssignment pe;
    for (const auto rail : rails) {
        NicChoice nic;
        nic.nic = "n" + std::to_string(rail);
        nic.rail = rail;
        pe.nics.push_back(nic);
    }
    return pe;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> rails_of(const std::vector<NicPair>& pairs) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
    for (const auto& pair : pairs) out.emplace_back(pair.mine.rail, pair.theirs.rail);
    return out;
}

TEST(PairNics, PrefersTheSameRail) {
    EXPECT_THAT(rails_of(pair_nics(pe_with({0, 1}), pe_with({1, 0}))), ElementsAre(std::pair(0, 0), std::pair(1, 1)));
    EXPECT_THAT(rails_of(pair_nics(pe_with({0, 3}), pe_with({5, 3}))), ElementsAre(std::pair(3, 3), std::pair(0, 5)));
}

TEST(PairNics, TakesThePeersInTurnOtherwise) {
    EXPECT_THAT(rails_of(pair_nics(pe_with({0, 1, 2}), pe_with({7, 8}))),
                ElementsAre(std::pair(0, 7), std::pair(1, 8), std::pair(2, 7)));
}

TEST(PairNics, IsEmptyWithoutNics) {
    EXPECT_THAT(pair_nics(pe_with({}), pe_with({1})), IsEmpty());
    EXPECT_THAT(pair_nics(pe_with({1}), pe_with({})), IsEmpty());
}

TEST(PairNics, SaysWhy) {
    EXPECT_EQ(why(pair_nics(pe_with({2}), pe_with({2}))[0]), "rail 2 on both ends");
    EXPECT_EQ(why(pair_nics(pe_with({2}), pe_with({4}))[0]), "rails 2 and 4, as the peer has no NIC of rail 2");
}

}  // namespace
}  // namespace npushmem::topology
