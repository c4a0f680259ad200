// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/rank_mask.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace npushmem::moe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RankMask masked(std::int32_t experts, std::int32_t ranks, std::vector<std::int32_t> remaining,
                const std::vector<std::int32_t>& substitutes = {}) {
    auto mask = RankMask::create(ExpertPlacement(experts, ranks), std::move(remaining), substitutes);
    EXPECT_TRUE(mask.ok()) << mask.status().message();
    return std::move(mask).value();
}

TEST(RankMask, WithoutMaskedRanksTheNumbersAreTheSame) {
    for (const RankMask& mask : {RankMask(ExpertPlacement(9, 4)), masked(9, 4, {0, 1, 2, 3})}) {
        EXPECT_FALSE(mask.masks_any());
        EXPECT_EQ(mask.experts(), 9);
        EXPECT_EQ(mask.ranks(), 4);
        EXPECT_EQ(mask.to_layer(8), 8);
        EXPECT_EQ(mask.to_layer(no_expert), no_expert);
        EXPECT_EQ(mask.first_expert(1), 3);
    }
}

// For every number of experts and ranks, and every set of ranks that goes on: the smaller layer places each expert on
// the rank that holds it.
TEST(RankMask, ExpertsStayOnTheirRanks) {
    for (std::int32_t ranks = 1; ranks <= 6; ++ranks) {
        for (std::int32_t experts = ranks; experts <= 20; ++experts) {
            const ExpertPlacement all(experts, ranks);
            for (std::uint32_t set = 1; set < 1U << ranks; ++set) {
                std::vector<std::int32_t> remaining;
                for (std::int32_t rank = 0; rank < ranks; ++rank)
                    if ((set >> rank & 1U) != 0) remaining.push_back(rank);
                const RankMask mask = masked(experts, ranks, remaining);
                const ExpertPlacement smaller(mask.experts(), static_cast<std::int32_t>(remaining.size()));
                for (std::int32_t expert = 0; expert < experts; ++expert) {
                    const std::int32_t in_layer = mask.to_layer(expert);
                    if ((set >> all.rank_of(expert) & 1U) == 0) {
                        ASSERT_EQ(in_layer, no_expert);
                        continue;
                    }
                    const std::int32_t rank = smaller.rank_of(in_layer);
                    ASSERT_EQ(remaining[static_cast<std::size_t>(rank)], all.rank_of(expert));
                    ASSERT_EQ(mask.first_expert(rank) + in_layer - smaller.first_expert(rank), expert);
                }
            }
        }
    }
}

// Of two experts on each rank, with a gap before the second one.
TEST(RankMask, MaskedRanksBeginWhereTheirExpertBegins) {
    const RankMask mask = masked(6, 3, {1, 2});
    const std::vector<std::int32_t> offsets{0, 2, 8, 9};
    const std::vector<std::int32_t> lengths{2, 1, 1, 0};
    const RankMask::Tables wide = mask.widened(offsets, lengths);
    EXPECT_THAT(wide.offsets, ElementsAre(0, 0, 2, 8, 8, 9));
    EXPECT_THAT(wide.lengths, ElementsAre(0, 2, 1, 0, 1, 0));
}

TEST(RankMask, SubstitutesGetTheTokensOfMaskedExperts) {
    const RankMask mask = masked(6, 3, {0, 2}, {5, 5, 1, no_expert, 5, 5});
    EXPECT_EQ(mask.to_layer(0), 0);  // goes on: it needs no substitute
    EXPECT_EQ(mask.to_layer(2), 1);
    EXPECT_EQ(mask.to_layer(3), no_expert);
    EXPECT_EQ(mask.to_layer(4), 2);
    EXPECT_EQ(mask.to_layer(no_expert), no_expert);
}

TEST(RankMask, RejectsSubstitutesThatDoNotGoOnAndRanksWithoutExperts) {
    const ExpertPlacement all(6, 3);
    const auto message = [&](const std::vector<std::int32_t>& substitutes) {
        return RankMask::create(all, {0, 2}, substitutes).status().message();
    };
    EXPECT_THAT(message({0, 0, 3, 0, 0, 0}), HasSubstr("the substitute of expert 2 is 3"));
    EXPECT_THAT(message({0, 0, 0, 6, 0, 0}), HasSubstr("the substitute of expert 3 is 6"));
    EXPECT_THAT(message({0, 0, 0, -2, 0, 0}), HasSubstr("the substitute of expert 3 is -2"));
    EXPECT_EQ(message({9, 9, 0, 0, 9, 9}), "");  // of experts that go on
    EXPECT_THAT(RankMask::create(ExpertPlacement(2, 3), {2}, {}).status().message(),
                HasSubstr("none of the 2 experts is on a rank that goes on"));
}

TEST(RankMask, TablesHaveAColumnForEveryRank) {
    const RankMask mask = masked(6, 4, {1, 3});
    const std::vector<std::int32_t> offsets{0, 3, 5, 5};
    const std::vector<std::int32_t> lengths{3, 2, 0, 4};
    const RankMask::Tables wide = mask.widened(offsets, lengths);
    EXPECT_THAT(wide.offsets, ElementsAre(0, 0, 3, 3, 5, 5, 5, 5));
    EXPECT_THAT(wide.lengths, ElementsAre(0, 3, 0, 2, 0, 0, 0, 4));
    const auto narrow = mask.narrowed(wide.offsets, wide.lengths);
    ASSERT_TRUE(narrow.ok());
    EXPECT_EQ(narrow.value().offsets, offsets);
    EXPECT_EQ(narrow.value().lengths, lengths);
    EXPECT_THAT(
        mask.narrowed(std::vector{0, 0, 0, 0, 0, 0, 0, 0}, std::vector{0, 3, 0, 2, 0, 0, 7, 4}).status().message(),
        HasSubstr("7 rows of local expert 1 for rank 2, which is masked"));
}

}  // namespace
}  // namespace npushmem::moe
