// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/vector_ops.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "npushmem/npu/numeric.hpp"
#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

// A 16-bit format with `mantissa` stored bits and the minimum normal exponent `least`.
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

// Tests every float at, just below and just above a tie or a representable value, for every exponent and sign.
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
        // Rounded through a float, these would become the tie and might round to the wrong neighbour.
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
    // 2^24 + 2^16 + 1: rounded through a float, it would become the tie between two bfloat16.
    EXPECT_EQ(static_cast<float>(convert<bfloat16>(16777216 + 65536 + 1)), 16777216.0F + 131072.0F);
    EXPECT_EQ(static_cast<float>(convert<bfloat16>(16777216 + 65536)), 16777216.0F);
    EXPECT_EQ(static_cast<float>(convert<half>(2049)), 2048.0F);
    EXPECT_EQ(static_cast<float>(convert<half>(-2051)), -2052.0F);
    EXPECT_TRUE(std::isinf(static_cast<float>(convert<half>(65520))));
}

using fakes::ArrayPe;
using fakes::SymmetricArray;
using testing::HasSubstr;

template <class T>
T random_value(std::mt19937& random) {
    if constexpr (std::is_same_v<T, std::int32_t>)
        return static_cast<T>(random());
    else
        return T(std::uniform_real_distribution<float>(-8.0F, 8.0F)(random));
}

// One rounding per operation; integers wrap.
template <class T>
T plus(T a, T b) {
    if constexpr (std::is_same_v<T, std::int32_t>) {
        return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
    } else {
        return T(static_cast<float>(a) + static_cast<float>(b));
    }
}
template <class T>
T minus(T a, T b) {
    if constexpr (std::is_same_v<T, std::int32_t>) {
        return static_cast<T>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
    } else {
        return T(static_cast<float>(a) - static_cast<float>(b));
    }
}
template <class T>
T times(T a, T b) {
    if constexpr (std::is_same_v<T, std::int32_t>) {
        return static_cast<T>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
    } else {
        return T(static_cast<float>(a) * static_cast<float>(b));
    }
}

template <class T>
bool same_bits(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

struct VectorTest : testing::Test {
    SymmetricArray array{1, 64};
    ArrayPe pe{array, 0, {.blocks = 1, .vector_cores = 1}};
    static constexpr std::size_t room = 160;
    static constexpr std::size_t lengths[] = {1, 7, 8, 15, 16, 17, 100, 128};

    // Runs `operation(core, target, a, b, count)` on random operands; `expected(target, a, b)` gives each element.
    template <class T, class Operation, class Expected>
    void check(Operation operation, Expected expected) {
        std::mt19937 random(7);
        for (const std::size_t count : lengths) {
            const Status status = pe.run(1, [&](Core& core) {
                const auto target = core.ub_alloc<T>(room);
                const auto a = core.ub_alloc<T>(room);
                const auto b = core.ub_alloc<T>(room);
                std::vector<T> before(room);
                for (std::size_t i = 0; i < room; ++i) {
                    core.set(target, i, before[i] = random_value<T>(random));
                    core.set(a, i, random_value<T>(random));
                    core.set(b, i, random_value<T>(random));
                }
                operation(core, target, a, b, count);
                for (std::size_t i = 0; i < room; ++i) {
                    const T want = i < count ? expected(before[i], core.get(a, i), core.get(b, i)) : before[i];
                    ASSERT_TRUE(same_bits(core.get(target, i), want)) << "element " << i << " of " << count;
                }
            });
            ASSERT_TRUE(status.ok()) << status.message();
        }
    }
};

template <class T>
struct VectorOps : VectorTest {};
using NumberTypes = testing::Types<float, half, bfloat16, std::int32_t>;
TYPED_TEST_SUITE(VectorOps, NumberTypes);

TYPED_TEST(VectorOps, Arithmetic) {
    using T = TypeParam;
    this->template check<T>([](Core& c, auto t, auto a, auto b, auto n) { c.add(t, a, b, n); },
                            [](T, T a, T b) { return plus(a, b); });
    this->template check<T>([](Core& c, auto t, auto a, auto b, auto n) { c.subtract(t, a, b, n); },
                            [](T, T a, T b) { return minus(a, b); });
    this->template check<T>([](Core& c, auto t, auto a, auto b, auto n) { c.multiply(t, a, b, n); },
                            [](T, T a, T b) { return times(a, b); });
    this->template check<T>([](Core& c, auto t, auto a, auto b, auto n) { c.multiply_add(t, a, b, n); },
                            [](T t, T a, T b) { return plus(t, times(a, b)); });
}

TYPED_TEST(VectorOps, ScalarsAndAxpy) {
    using T = TypeParam;
    const T scalar = std::is_same_v<T, std::int32_t> ? T(3) : T(1.375F);
    this->template check<T>([=](Core& c, auto t, auto a, auto, auto n) { c.add_scalar(t, a, scalar, n); },
                            [=](T, T a, T) { return plus(a, scalar); });
    this->template check<T>([=](Core& c, auto t, auto a, auto, auto n) { c.multiply_scalar(t, a, scalar, n); },
                            [=](T, T a, T) { return times(a, scalar); });
    this->template check<T>([=](Core& c, auto t, auto a, auto, auto n) { c.axpy(t, a, scalar, n); },
                            [=](T t, T a, T) { return plus(t, times(scalar, a)); });
}

TYPED_TEST(VectorOps, CopyFillAndInPlace) {
    using T = TypeParam;
    const T scalar = T(2);
    this->template check<T>([](Core& c, auto t, auto a, auto, auto n) { c.copy(t, a, n); },
                            [](T, T a, T) { return a; });
    this->template check<T>([=](Core& c, auto t, auto, auto, auto n) { c.fill(t, scalar, n); },
                            [=](T, T, T) { return scalar; });
    this->template check<T>([](Core& c, auto t, auto a, auto, auto n) { c.add(t, t, a, n); },
                            [](T t, T a, T) { return plus(t, a); });
}

template <class To, class From>
void check_cast(VectorTest& test) {
    std::mt19937 random(11);
    const Status status = test.pe.run(1, [&](Core& core) {
        const auto target = core.ub_alloc<To>(128);
        const auto source = core.ub_alloc<From>(128);
        for (std::size_t i = 0; i < 128; ++i) core.set(source, i, random_value<From>(random));
        core.cast(target, source, 113);
        for (std::size_t i = 0; i < 113; ++i) {
            ASSERT_TRUE(same_bits(core.get(target, i), convert<To>(core.get(source, i)))) << i;
        }
    });
    ASSERT_TRUE(status.ok()) << status.message();
}

TYPED_TEST(VectorOps, CastsBetweenAllTypes) {
    check_cast<TypeParam, float>(*this);
    check_cast<TypeParam, half>(*this);
    check_cast<TypeParam, bfloat16>(*this);
    check_cast<TypeParam, std::int32_t>(*this);
}

template <class From>
void check_mixed_axpy(VectorTest& test) {
    const Status status = test.pe.run(1, [&](Core& core) {
        const auto target = core.ub_alloc<float>(64);
        const auto source = core.ub_alloc<From>(64);
        core.fill(target, 0.1F, 64);
        for (std::size_t i = 0; i < 64; ++i) core.set(source, i, From(static_cast<float>(i) * 0.3F));
        core.axpy(target, source, 0.7F, 63);
        for (std::size_t i = 0; i < 64; ++i) {
            const float product = 0.7F * static_cast<float>(core.get(source, i));
            ASSERT_EQ(core.get(target, i), i < 63 ? 0.1F + product : 0.1F);
        }
    });
    ASSERT_TRUE(status.ok()) << status.message();
}

TEST_F(VectorTest, AxpyAccumulatesSixteenBitsInFloat) {
    check_mixed_axpy<half>(*this);
    check_mixed_axpy<bfloat16>(*this);
}

TEST_F(VectorTest, RejectsMisalignedEmptyAndTooLong) {
    const Status status = pe.run(1, [&](Core& core) {
        const auto a = core.ub_alloc<float>(16);
        const auto b = core.ub_alloc<float>(32);
        const auto refusal = [&](auto body) -> std::string {
            try {
                body();
            } catch (const KernelError& error) {
                return error.what();
            }
            return "";
        };
        EXPECT_THAT(refusal([&] { core.add(a, a.from(1), b, 8); }), HasSubstr("off by 4 bytes"));
        EXPECT_THAT(refusal([&] { core.add(a, b, b, 17); }), HasSubstr("count 17 must be 1 to 16"));
        EXPECT_THAT(refusal([&] { core.fill(a, 0.0F, 0); }), HasSubstr("fill: count 0"));
        EXPECT_THAT(refusal([&] { core.cast(core.ub_alloc<half>(16), b, 20); }), HasSubstr("cast: count 20"));
        EXPECT_THAT(refusal([&] { core.copy(b.from(4), a, 16); }), HasSubstr("vector_ops_test.cpp"));
    });
    EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace npushmem::npu
