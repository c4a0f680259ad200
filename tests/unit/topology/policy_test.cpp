#include "topology/policy.hpp"

#include <gmock/gmock.h>

namespace npushmem::topology {
namespace {

using ::testing::HasSubstr;

TEST(ParsePolicy, KnowsItsNames) {
    for (const auto policy : {Policy::balanced, Policy::nearest, Policy::exclusive, Policy::round_robin, Policy::list})
        EXPECT_EQ(parse_policy(name_of(policy)).value(), policy);
    EXPECT_EQ(parse_policy("round_robin").value(), Policy::round_robin);
}

TEST(ParsePolicy, ListsTheNamesInItsRefusal) {
    const auto policy = parse_policy("fastest");
    ASSERT_FALSE(policy.ok());
    EXPECT_EQ(policy.status().code(), Code::config);
    EXPECT_THAT(policy.status().message(), HasSubstr("choose balanced, nearest, exclusive, round_robin or list"));
}

}  // namespace
}  // namespace npushmem::topology
