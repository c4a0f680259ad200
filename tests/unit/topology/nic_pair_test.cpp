#include "topology/nic_pair.hpp"

#include <gmock/gmock.h>

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PeAssignment pe_with(std::uint32_t pe, const std::vector<std::uint32_t>& rail_numbers) {
    PeAssignment out;
    out.pe = pe;
    for (const auto number : rail_numbers) {
        NicChoice nic;
        nic.nic = "n" + std::to_string(number);
        nic.rail_number = number;
        out.nics.push_back(nic);
    }
    return out;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> rails_of(const std::vector<NicPair>& pairs) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
    for (const auto& pair : pairs) out.emplace_back(pair.mine.rail_number, pair.theirs.rail_number);
    return out;
}

TEST(PairNics, PairsEqualRails) {
    EXPECT_THAT(rails_of(pair_nics(pe_with(0, {0, 1}), pe_with(9, {1, 0}))),
                ElementsAre(std::pair(0, 0), std::pair(1, 1)));
    EXPECT_THAT(rails_of(pair_nics(pe_with(9, {0, 3}), pe_with(0, {5, 3}))), ElementsAre(std::pair(3, 3)));
}

TEST(PairNics, SaysWhyThereIsNoRailInCommon) {
    const auto pairs = pair_nics(pe_with(0, {2}), pe_with(9, {4}));
    EXPECT_THAT(rails_of(pairs), ElementsAre(std::pair(2, 4)));
    EXPECT_EQ(pairs[0].why, "rails 2 and 4, no rail in common");
}

TEST(PairNics, IsEmptyWithoutNics) {
    EXPECT_THAT(pair_nics(pe_with(0, {}), pe_with(1, {1})), IsEmpty());
    EXPECT_THAT(pair_nics(pe_with(0, {1}), pe_with(1, {})), IsEmpty());
}

}  // namespace
}  // namespace npushmem::topology
