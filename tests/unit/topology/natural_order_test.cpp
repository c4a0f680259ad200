#include "topology/natural_order.hpp"

#include <gtest/gtest.h>

namespace npushmem::topology {
namespace {

TEST(NaturalLess, CountsNumbersAsNumbers) {
    EXPECT_TRUE(natural_less("mlx5_2", "mlx5_10"));
    EXPECT_FALSE(natural_less("mlx5_10", "mlx5_2"));
    EXPECT_TRUE(natural_less("eth0", "mlx5_0"));
    EXPECT_TRUE(natural_less("mlx5", "mlx5_0"));
}

TEST(NaturalLess, HandlesNumbersLongerThanAnyInteger) {
    EXPECT_TRUE(natural_less("n99999999999999999999998", "n99999999999999999999999"));
    EXPECT_TRUE(natural_less("n9", "n10000000000000000000000"));
}

TEST(NaturalLess, IsStrict) {
    EXPECT_FALSE(natural_less("mlx5_1", "mlx5_1"));
    EXPECT_NE(natural_less("x01", "x1"), natural_less("x1", "x01"));
}

}  // namespace
}  // namespace npushmem::topology
