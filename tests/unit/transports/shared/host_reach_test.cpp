#include "transports/shared/host_reach.hpp"

#include <gmock/gmock.h>

namespace npushmem::shared_memory {
namespace {

using ::testing::HasSubstr;

constexpr npushmem_host_id here{1, 2, -1, 1000};

npushmem_host_id emulated(int host) { return {1, 2 + static_cast<std::uint64_t>(host), host, 1000}; }

TEST(WhatSeparates, NothingOnTheSameHost) {
    EXPECT_EQ(why_not_shareable(here, here), "");
    EXPECT_EQ(why_not_shareable(emulated(1), emulated(1)), "");
}

TEST(WhatSeparates, IsSaidForPeople) {
    EXPECT_EQ(why_not_shareable(here, {9, 2, -1, 1000}), "another machine");
    EXPECT_THAT(why_not_shareable(here, {1, 9, -1, 1000}), HasSubstr("namespace"));
    EXPECT_THAT(why_not_shareable(here, {1, 2, -1, 5}), HasSubstr("another user (uid 5, this PE has uid 1000)"));
}

TEST(WhatSeparates, EmulatedHostsAreNamedBeforeTheirNamespaces) {
    EXPECT_EQ(why_not_shareable(emulated(0), emulated(1)),
              "on emulated host 1, this PE is on emulated host 0: memory of different emulated hosts cannot be mapped");
    EXPECT_THAT(why_not_shareable(here, emulated(1)), HasSubstr("this PE is on no emulated host"));
}

}  // namespace
}  // namespace npushmem::shared_memory
