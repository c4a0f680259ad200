// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/reduce_kernel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "npushmem/npu/bfloat16.hpp"
#include "npushmem/npu/half.hpp"

namespace npushmem::coll {
namespace {

TEST(Kernels, ExistForEveryValidOperationAndType) {
    for (int operation = 0; operation <= static_cast<int>(ReduceOperation::prod); ++operation)
        for (int element = 0; element <= static_cast<int>(ReduceElement::c64); ++element) {
            const auto op = static_cast<ReduceOperation>(operation);
            const auto of = static_cast<ReduceElement>(element);
            const bool bits = of <= ReduceElement::u64;
            const bool ordered = of <= ReduceElement::f80;
            const bool meant = op >= ReduceOperation::sum || (op >= ReduceOperation::max ? ordered : bits);
            EXPECT_EQ(reduce_kernel_of(op, of) != nullptr, meant) << operation << " of " << element;
        }
}

TEST(Kernels, CombineSixteenBitsAsFloat) {
    const Reduction product(ReduceOperation::prod, ReduceElement::bf16);
    EXPECT_EQ(product.accumulator_size, sizeof(float));
    const npu::bfloat16 values[] = {npu::bfloat16(1.5F), npu::bfloat16(-3.0F)};
    float accumulators[2];
    product.begin(accumulators, values, 2);
    product.kernel(accumulators, values, 2);
    EXPECT_EQ(accumulators[0], 2.25F);
    EXPECT_EQ(accumulators[1], 9.0F);
    accumulators[0] = 1.0F + 1.0F / 512;  // between two numbers of bfloat16
    npu::bfloat16 rounded[2];
    product.finish(rounded, accumulators, 2);
    EXPECT_EQ(static_cast<float>(rounded[0]), 1.0F);
    EXPECT_EQ(static_cast<float>(rounded[1]), 9.0F);
}

template <class T>
void expect_nan_from_any_place(ReduceElement element) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (const ReduceOperation operation : {ReduceOperation::max, ReduceOperation::min}) {
        T results[] = {nan, 1, 2, nan};
        const T with[] = {1, nan, 3, nan};
        reduce_kernel_of(operation, element)(results, with, 4);
        EXPECT_TRUE(std::isnan(results[0]));
        EXPECT_TRUE(std::isnan(results[1]));
        EXPECT_EQ(results[2], operation == ReduceOperation::max ? 3 : 2);
        EXPECT_TRUE(std::isnan(results[3]));
    }
}

TEST(Kernels, ANanIsTheLargestAndTheSmallest) {
    expect_nan_from_any_place<float>(ReduceElement::f32);
    expect_nan_from_any_place<double>(ReduceElement::f64);
    expect_nan_from_any_place<long double>(ReduceElement::f80);
    float result = 1;  // an accumulator
    const npu::half nan = npu::half::from_bits(0x7E00);
    reduce_kernel_of(ReduceOperation::max, ReduceElement::f16)(&result, &nan, 1);
    EXPECT_TRUE(std::isnan(result));
}

TEST(Kernels, WrapAroundAndKeepTheSign) {
    std::int8_t small[] = {127, -128};
    const std::int8_t with[] = {1, -1};
    reduce_kernel_of(ReduceOperation::sum, ReduceElement::i8)(small, with, 2);
    EXPECT_EQ(small[0], -128);
    EXPECT_EQ(small[1], 127);
    std::int32_t large[] = {2147483647, -5};
    const std::int32_t factor[] = {2147483647, 3};
    reduce_kernel_of(ReduceOperation::prod, ReduceElement::i32)(large, factor, 2);
    EXPECT_EQ(large[0], 1);
    EXPECT_EQ(large[1], -15);
    std::uint64_t greater[] = {~std::uint64_t{0}};
    const std::uint64_t less[] = {1};
    reduce_kernel_of(ReduceOperation::max, ReduceElement::u64)(greater, less, 1);
    EXPECT_EQ(greater[0], ~std::uint64_t{0});
}

}  // namespace
}  // namespace npushmem::coll
