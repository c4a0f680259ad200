// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/element.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace npushmem::moe {
namespace {

// The value of a half by its definition.
double half_by_definition(std::uint16_t bits) {
    const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    const int exponent = (bits >> 10) & 31;
    const double fraction = bits & 0x3FFU;
    if (exponent == 0) return sign * std::ldexp(fraction, -24);
    return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Half, EveryPatternHasTheValueOfItsDefinition) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const Half half{static_cast<std::uint16_t>(bits)};
        if ((bits & 0x7C00U) == 0x7C00U) continue;
        ASSERT_EQ(static_cast<double>(to_float(half)), half_by_definition(half.bits)) << bits;
        ASSERT_EQ(std::signbit(to_float(half)), (bits & 0x8000U) != 0) << bits;
    }
}

TEST(Half, ConvertsInfinitiesAndNan) {
    EXPECT_EQ(to_float(Half{0x7C00}), std::numeric_limits<float>::infinity());
    EXPECT_EQ(to_float(Half{0xFC00}), -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(to_float(Half{0x7C01})));
    EXPECT_EQ(from_float<Half>(std::nanf("")).bits & 0x7FFFU, 0x7E00U);
    EXPECT_EQ(from_float<Half>(65520.0F).bits, 0x7C00U);
    EXPECT_EQ(from_float<Half>(-65519.0F).bits, 0xFBFFU);
}

TEST(Half, EveryPatternConvertsToFloatAndBackUnchanged) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        if ((bits & 0x7C00U) == 0x7C00U && (bits & 0x3FFU) != 0) continue;
        ASSERT_EQ(from_float<Half>(to_float(Half{static_cast<std::uint16_t>(bits)})).bits, bits);
    }
}

// Between two neighbours, the middle rounds to the even one, and its float neighbours to the nearer one.
template <class Element>
void expect_rounding_between(std::uint16_t low) {
    const auto next = static_cast<std::uint16_t>(low + 1);
    const float a = to_float(Element{low});
    const float b = to_float(Element{next});
    const float middle = a + (b - a) / 2;
    ASSERT_EQ(from_float<Element>(middle).bits, (low & 1U) != 0 ? next : low) << low;
    ASSERT_EQ(from_float<Element>(std::nextafter(middle, a)).bits, low) << low;
    ASSERT_EQ(from_float<Element>(std::nextafter(middle, b)).bits, next) << low;
}

TEST(Half, RoundsToNearestEvenEverywhere) {
    for (std::uint32_t low = 0; low < 0x7BFF; ++low) expect_rounding_between<Half>(static_cast<std::uint16_t>(low));
}

TEST(Bfloat16, RoundsToNearestEvenEverywhere) {
    for (std::uint32_t low = 0x0080; low < 0x7F7F; ++low)
        expect_rounding_between<Bfloat16>(static_cast<std::uint16_t>(low));
}

TEST(Bfloat16, EveryPatternConvertsToFloatAndBackUnchanged) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float value = to_float(Bfloat16{static_cast<std::uint16_t>(bits)});
        if (std::isnan(value)) {
            ASSERT_TRUE(std::isnan(to_float(from_float<Bfloat16>(value)))) << bits;
        } else {
            ASSERT_EQ(from_float<Bfloat16>(value).bits, bits);
        }
    }
}

TEST(Bfloat16, NanWhoseFractionLiesInTheLostBitsStaysNan) {
    EXPECT_TRUE(std::isnan(to_float(from_float<Bfloat16>(std::bit_cast<float>(0x7F800001U)))));
    EXPECT_EQ(from_float<Bfloat16>(std::numeric_limits<float>::max()).bits, 0x7F80U);
}

}  // namespace
}  // namespace npushmem::moe
