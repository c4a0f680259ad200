// Vector operations through Core, against one-element references, for every type and for lengths around the vector
// widths.
#include "npushmem/npu/vector_ops.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/fakes/array_fabric.hpp"

namespace npushmem::npu {
namespace {

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

TEST_F(VectorTest, RefusesMisalignedEmptyAndTooLong) {
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
