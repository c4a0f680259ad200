// half, bfloat16 and the conversions, against references that use nothing but double arithmetic.
#include "npushmem/npu/numeric.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace npushmem::npu {
namespace {

// A 16-bit format with `mantissa` stored bits and smallest normal exponent `least`.
struct Format {
    int mantissa;
    int least;
    double largest;
};
constexpr Format half_format{10, -14, 65504.0};
const Format bfloat_format{7, -126, std::ldexp(255.0, 120)};

double value_of(const Format& format, unsigned bits) {
    const int exponent_bits = 15 - format.mantissa;
    const int exponent = static_cast<int>(bits >> format.mantissa) & ((1 << exponent_bits) - 1);
    const double fraction = std::ldexp(bits & ((1U << format.mantissa) - 1), -format.mantissa);
    const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? std::nan("") : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(fraction, format.least);
    return sign * std::ldexp(1.0 + fraction, format.least + exponent - 1);
}

// Round to nearest, ties to even, by exact double arithmetic (the default rounding mode of nearbyint).
double rounded(const Format& format, double value) {
    if (value == 0 || !std::isfinite(value)) return value;
    const int exponent = std::max(std::ilogb(value), format.least);
    const double unit = std::ldexp(1.0, exponent - format.mantissa);
    const double result = std::nearbyint(value / unit) * unit;
    return std::fabs(result) > format.largest ? std::copysign(INFINITY, value) : result;
}

bool same(double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T>
struct Of;
template <>
struct Of<half> {
    static Format format() { return half_format; }
};
template <>
struct Of<bfloat16> {
    static Format format() { return bfloat_format; }
};

template <class T>
struct Sixteen : testing::Test {};
using SixteenTypes = testing::Types<half, bfloat16>;
TYPED_TEST_SUITE(Sixteen, SixteenTypes);

TYPED_TEST(Sixteen, EveryPatternHasItsValueAndSurvivesARoundTrip) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        const auto value = TypeParam::from_bits(static_cast<std::uint16_t>(bits));
        const auto wide = static_cast<float>(value);
        ASSERT_TRUE(same(static_cast<double>(wide), value_of(Of<TypeParam>::format(), bits))) << bits;
        if (!std::isnan(wide))
            ASSERT_EQ(TypeParam(wide).bits(), bits);
        else
            ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(wide))));
    }
}

// Every float that lies on, just below or just above a tie or a representable value, for every exponent and sign.
TYPED_TEST(Sixteen, RoundsToNearestEven) {
    const Format format = Of<TypeParam>::format();
    for (unsigned bits = 0; bits < 0x8000; ++bits) {
        const double low = value_of(format, bits);
        const double high = value_of(format, bits + 1);
        if (!std::isfinite(low)) break;
        const double step = std::isfinite(high) ? high - low : std::ldexp(1.0, std::ilogb(low) - format.mantissa);
        const auto tie = static_cast<float>(low + step / 2);
        for (float base : {static_cast<float>(low), tie}) {
            for (float value : {std::nextafter(base, 0.0F), base, std::nextafter(base, INFINITY)}) {
                const double expected = rounded(format, static_cast<double>(value));
                ASSERT_TRUE(same(static_cast<double>(static_cast<float>(TypeParam(value))), expected)) << value;
                ASSERT_TRUE(same(static_cast<double>(static_cast<float>(TypeParam(-value))), -expected)) << value;
            }
        }
    }
}

TYPED_TEST(Sixteen, RoundsDoublesOnce) {
    const Format format = Of<TypeParam>::format();
    for (unsigned bits = 1; bits < 0x7F00; bits += 7) {
        const double low = value_of(format, bits);
        const double high = value_of(format, bits + 1);
        if (!std::isfinite(high)) break;
        const double tie = (low + high) / 2;
        // Rounded by way of a float these would become the tie, and then perhaps the wrong neighbour.
        for (double value : {std::nextafter(tie, 0.0), tie, std::nextafter(tie, INFINITY)}) {
            ASSERT_EQ(static_cast<double>(static_cast<float>(TypeParam::from_double(value))), rounded(format, value));
            ASSERT_EQ(static_cast<double>(static_cast<float>(TypeParam::from_double(-value))), -rounded(format, value));
        }
    }
}

TYPED_TEST(Sixteen, Specials) {
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(static_cast<float>(TypeParam(infinity)), infinity);
    EXPECT_EQ(static_cast<float>(TypeParam(-infinity)), -infinity);
    EXPECT_EQ(static_cast<float>(TypeParam(std::numeric_limits<float>::max())), infinity);
    EXPECT_EQ(TypeParam(-0.0F).bits(), 0x8000);
    EXPECT_TRUE(
        std::isnan(static_cast<float>(TypeParam(std::bit_cast<float>(0x7F800001U)))));  // signalling, low payload
    EXPECT_TRUE(TypeParam(0.0F) == TypeParam(-0.0F));
    EXPECT_FALSE(TypeParam(NAN) == TypeParam(NAN));
    EXPECT_TRUE(TypeParam(1.0F) < TypeParam(2.0F));
    EXPECT_EQ(static_cast<float>(TypeParam(1.5F) * TypeParam(2.0F) + TypeParam(-1.0F) / TypeParam(4.0F)), 2.75F);
    EXPECT_EQ(static_cast<float>(-TypeParam(3.0F) - TypeParam(1.0F)), -4.0F);
}

TEST(Convert, FloatToIntRoundsToEvenAndSaturates) {
    for (const auto& [value, expected] : std::vector<std::pair<float, std::int32_t>>{{0.5F, 0},
                                                                                     {1.5F, 2},
                                                                                     {2.5F, 2},
                                                                                     {-0.5F, 0},
                                                                                     {-1.5F, -2},
                                                                                     {-2.5F, -2},
                                                                                     {8388609.0F, 8388609},
                                                                                     {4194303.5F, 4194304},
                                                                                     {2147483520.0F, 2147483520},
                                                                                     {3e9F, 2147483647},
                                                                                     {-3e9F, -2147483647 - 1},
                                                                                     {INFINITY, 2147483647},
                                                                                     {NAN, 0}}) {
        EXPECT_EQ(convert<std::int32_t>(value), expected) << value;
    }
}

TEST(Convert, IntToSixteenBitsRoundsOnce) {
    // 2^24 + 2^16 + 1: by way of a float it would become the tie between two bfloat16.
    EXPECT_EQ(static_cast<float>(convert<bfloat16>(16777216 + 65536 + 1)), 16777216.0F + 131072.0F);
    EXPECT_EQ(static_cast<float>(convert<bfloat16>(16777216 + 65536)), 16777216.0F);
    EXPECT_EQ(static_cast<float>(convert<half>(2049)), 2048.0F);
    EXPECT_EQ(static_cast<float>(convert<half>(-2051)), -2052.0F);
    EXPECT_TRUE(std::isinf(static_cast<float>(convert<half>(65520))));
}

}  // namespace
}  // namespace npushmem::npu
