// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/routing.hpp"

#include <gmock/gmock.h>

namespace npushmem::moe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CheckRouting, NamesRankTokenAndChoiceOfABadExpert) {
    const std::vector<std::int32_t> ids{0, -1, 3, 4};
    const std::vector<float> weights(4, 1.0F);
    EXPECT_TRUE(check_routing({ids, weights}, 5, 2, 0).ok());
    const Status status = check_routing({ids, weights}, 4, 2, 6);
    EXPECT_EQ(status.code(), Code::range);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 6"), HasSubstr("token 1, choice 1"), HasSubstr("expert 4")));
    const std::vector<std::int32_t> negative{0, -2};
    EXPECT_FALSE(check_routing({negative, std::span(weights).first(2)}, 4, 2, 0).ok());
}

TEST(CheckRouting, RefusesBrokenTokensAndMissingWeights) {
    const std::vector<std::int32_t> ids{0, 1, 2};
    const std::vector<float> weights(3, 1.0F);
    EXPECT_THAT(check_routing({ids, weights}, 4, 2, 0).message(), HasSubstr("not whole tokens"));
    EXPECT_THAT(check_routing({std::span(ids).first(2), weights}, 4, 2, 0).message(), HasSubstr("3 weights"));
}

}  // namespace
}  // namespace npushmem::moe
