#include "core/moe/placement.hpp"

#include <gtest/gtest.h>

namespace npushmem::moe {
namespace {

TEST(ExpertPlacement, EveryExpertHasOneRankAndBlocksAreEqualWithinOne) {
    for (std::int32_t experts = 1; experts <= 40; ++experts) {
        for (std::int32_t ranks = 1; ranks <= 20; ++ranks) {
            const ExpertPlacement placement(experts, ranks);
            ASSERT_EQ(placement.first_expert(0), 0);
            ASSERT_EQ(placement.first_expert(ranks), experts);
            for (std::int32_t rank = 0; rank < ranks; ++rank) {
                const std::int32_t count = placement.local_experts(rank);
                ASSERT_EQ(placement.first_expert(rank) + count, placement.first_expert(rank + 1));
                ASSERT_TRUE(count == experts / ranks || count == experts / ranks + 1);
                for (std::int32_t i = 0; i < count; ++i) {
                    ASSERT_EQ(placement.rank_of(placement.first_expert(rank) + i), rank) << experts << ' ' << ranks;
                }
            }
        }
    }
}

}  // namespace
}  // namespace npushmem::moe
