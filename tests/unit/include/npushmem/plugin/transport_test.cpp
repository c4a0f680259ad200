// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/plugin/transport.hpp"

#include <gtest/gtest.h>

namespace npushmem {
namespace {

constexpr npushmem_host_id this_one{7, 4'026'531'836, -1, 1000};

TEST(IsSameHost, ComparesMachinePidNamespaceAndEmulatedHost) {
    EXPECT_TRUE(is_same_host(this_one, this_one));
    npushmem_host_id other = this_one;
    other.machine = 8;
    EXPECT_FALSE(is_same_host(this_one, other));
    other = this_one;
    other.space += 1;
    EXPECT_FALSE(is_same_host(this_one, other));
    other = this_one;
    other.emulated = 0;
    EXPECT_FALSE(is_same_host(this_one, other));
}

TEST(IsSameHost, IgnoresTheUser) {
    npushmem_host_id other = this_one;
    other.user = 0;
    EXPECT_TRUE(is_same_host(this_one, other));
}

}  // namespace
}  // namespace npushmem
