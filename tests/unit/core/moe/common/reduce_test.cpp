// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/reduce.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench/moe/payload.hpp"
#include "core/moe/common/nontemporal_copy.hpp"

namespace npushmem::moe {
namespace {

constexpr std::size_t max_rows = 9;

// Rows of one token in an element type, with one more element behind each row and behind the output that must stay
// unchanged.
template <class Input, class Output>
class Sum {
public:
    Sum(std::size_t count, std::size_t columns, std::uint64_t salt) : count_(count), columns_(columns) {
        for (std::size_t k = 0; k < count; ++k) {
            auto& row = rows_.emplace_back(columns + 1);
            const std::uint64_t seed = row_seed({salt, 0, static_cast<std::uint32_t>(k), 7});
            for (std::size_t c = 0; c < columns; ++c) row[c] = from_float<Input>(random_value(seed, c));
            weights_.push_back(0.1F + 0.37F * static_cast<float>(k));
        }
        for (const auto& row : rows_) pointers_.push_back(row.data());
    }

    // shift: elements from an address that is aligned to 64 bytes to the output.
    std::vector<Output> run(ReduceFunction function, bool streaming, std::size_t shift) {
        return run(
            [&](Output* out, const SumShape& shape) {
                function(out, pointers_.data(), weights_.data(), count_, shape, pointers_);
            },
            streaming, shift);
    }
    std::vector<Output> run(TreeFunction function, const std::vector<std::uint8_t>& ends, bool streaming,
                            std::size_t shift) {
        return run(
            [&](Output* out, const SumShape& shape) {
                function(out, pointers_.data(), weights_.data(), ends, shape, pointers_);
            },
            streaming, shift);
    }
    template <class Function>
    std::vector<Output> run(const Function& function, bool streaming, std::size_t shift) {
        constexpr std::size_t line = 64 / sizeof(Output);
        std::vector<Output> memory(columns_ + 1 + shift + line, from_float<Output>(77.0F));
        const std::size_t beyond = reinterpret_cast<std::uintptr_t>(memory.data()) / sizeof(Output) % line;
        Output* const out = memory.data() + (line - beyond) % line + shift;
        function(out, {columns_, 0, streaming});
        nontemporal_fence();
        return std::vector<Output>(out, out + columns_ + 1);
    }

    Output expected(std::size_t column) {
        const std::vector<std::int32_t> experts(count_, 1);
        return from_float<Output>(
            reference_sum(experts, weights_, [&](std::size_t k) { return to_float(rows_[k][column]); }));
    }

    Output expected(const std::vector<std::uint8_t>& ends, std::size_t column) {
        std::vector<std::int32_t> ranks;  // of the rows
        for (std::size_t rank = 0; rank < ends.size(); ++rank)
            ranks.resize(ends[rank], static_cast<std::int32_t>(rank));
        return from_float<Output>(reference_tree(
            ranks, weights_, [&](std::size_t k) { return to_float(rows_[k][column]); },
            static_cast<std::int32_t>(ends.size()), [](std::int32_t rank) { return rank; },
            [](float sum) { return to_float(from_float<Input>(sum)); }));
    }

    void check_bound(const std::vector<Output>& out, double output_unit) {
        const std::vector<std::int32_t> experts(count_, 1);
        for (std::size_t c = 0; c < columns_; ++c) {
            const DoubleSum sum =
                reference_double(experts, weights_, [&](std::size_t k) { return to_float(rows_[k][c]); });
            const double bound =
                static_cast<double>(count_ + 1) * 0x1p-24 * sum.magnitude + output_unit * std::abs(sum.sum);
            ASSERT_LE(std::abs(static_cast<double>(to_float(out[c])) - sum.sum), bound) << "column " << c;
        }
    }

private:
    std::size_t count_;
    std::size_t columns_;
    std::vector<std::vector<Input>> rows_;
    std::vector<const void*> pointers_;
    std::vector<float> weights_;
};

template <class Input, class Output>
void compare_with_reference(ElementType input, ElementType output, double output_unit) {
    for (const ReduceVariant& variant : reduce_variants()) {
        const ReduceFunction function = variant.function(input, output);
        for (const std::size_t columns : {0, 1, 7, 16, 17, 63, 64, 65, 128, 1000, 2048}) {
            for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, max_rows}) {
                Sum<Input, Output> sum(count, columns, columns * 31 + count);
                for (const auto& [streaming, shift] : {std::pair{false, 0U}, {true, 0U}, {true, 1U}}) {
                    const auto out = sum.run(function, streaming, shift);
                    for (std::size_t c = 0; c < columns; ++c) {
                        const Output expected = sum.expected(c);
                        ASSERT_EQ(std::memcmp(&out[c], &expected, sizeof expected), 0)
                            << variant.name << " column " << c << " streaming " << streaming;
                    }
                    ASSERT_EQ(to_float(out[columns]), 77.0F) << "written behind the end by " << variant.name;
                    sum.check_bound(out, output_unit);
                }
            }
        }
    }
}

template <class Input, class Output>
void compare_trees_with_reference(ElementType input, ElementType output) {
    for (const ReduceVariant& variant : reduce_variants()) {
        const TreeFunction function = variant.tree(input, output);
        for (const std::size_t columns : {0, 1, 17, 64, 65, 128, 1000, 2048}) {
            for (const std::vector<std::uint8_t>& ends :
                 {std::vector<std::uint8_t>{1}, {9}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 4, 5, 9}}) {
                Sum<Input, Output> sum(ends.back(), columns, columns * 31 + ends.size());
                for (const auto& [streaming, shift] : {std::pair{false, 0U}, {true, 0U}, {true, 1U}}) {
                    const auto out = sum.run(function, ends, streaming, shift);
                    for (std::size_t c = 0; c < columns; ++c) {
                        const Output expected = sum.expected(ends, c);
                        ASSERT_EQ(std::memcmp(&out[c], &expected, sizeof expected), 0)
                            << variant.name << " column " << c << " of " << columns << ", " << ends.size() << " sums";
                    }
                    ASSERT_EQ(to_float(out[columns]), 77.0F) << "written behind the end by " << variant.name;
                }
            }
        }
    }
}

TEST(Reduce, EveryVariantAndTypeGivesTheReferenceBitsOfATree) {
    compare_trees_with_reference<Bfloat16, Bfloat16>(ElementType::bfloat16, ElementType::bfloat16);
    compare_trees_with_reference<Bfloat16, float>(ElementType::bfloat16, ElementType::float32);
    compare_trees_with_reference<Bfloat16, Half>(ElementType::bfloat16, ElementType::half);
    compare_trees_with_reference<Half, Half>(ElementType::half, ElementType::half);
    compare_trees_with_reference<Half, float>(ElementType::half, ElementType::float32);
    compare_trees_with_reference<Half, Bfloat16>(ElementType::half, ElementType::bfloat16);
    compare_trees_with_reference<float, float>(ElementType::float32, ElementType::float32);
    compare_trees_with_reference<float, Bfloat16>(ElementType::float32, ElementType::bfloat16);
    compare_trees_with_reference<float, Half>(ElementType::float32, ElementType::half);
}

// Bounds: (K+1) 2^-24 of the magnitude for the float sum, and half a unit of the output type for the final rounding.
TEST(Reduce, EveryVariantAndTypeGivesTheReferenceBits) {
    compare_with_reference<Bfloat16, Bfloat16>(ElementType::bfloat16, ElementType::bfloat16, 0x1p-8);
    compare_with_reference<Bfloat16, float>(ElementType::bfloat16, ElementType::float32, 0);
    compare_with_reference<Bfloat16, Half>(ElementType::bfloat16, ElementType::half, 0x1p-11 + 0x1p-20);
    compare_with_reference<Half, Half>(ElementType::half, ElementType::half, 0x1p-11 + 0x1p-20);
    compare_with_reference<Half, float>(ElementType::half, ElementType::float32, 0);
    compare_with_reference<Half, Bfloat16>(ElementType::half, ElementType::bfloat16, 0x1p-8);
    compare_with_reference<float, float>(ElementType::float32, ElementType::float32, 0);
    compare_with_reference<float, Bfloat16>(ElementType::float32, ElementType::bfloat16, 0x1p-8);
    compare_with_reference<float, Half>(ElementType::float32, ElementType::half, 0x1p-11 + 0x1p-20);
}

template <class Element>
void expect_special_values(ElementType type) {
    const std::array<float, 4> a{INFINITY, -0.0F, NAN, 3e4F};
    const std::array<float, 4> b{1.0F, -0.0F, 1.0F, 3e4F};
    for (const ReduceVariant& variant : reduce_variants()) {
        for (const std::size_t columns : {4U, 200U}) {
            std::vector<Element> first;
            std::vector<Element> second;
            for (std::size_t c = 0; c < columns; ++c) {
                first.push_back(from_float<Element>(a[c % 4]));
                second.push_back(from_float<Element>(b[c % 4]));
            }
            const void* rows[] = {first.data(), second.data()};
            const float weights[] = {1.0F, 3e38F};
            std::vector<Element> out(columns);
            const auto expect = [&](const char* of) {
                for (std::size_t c = 0; c < columns; ++c) {
                    SCOPED_TRACE(::testing::Message()
                                 << variant.name << ", " << of << ", column " << c << " of " << columns);
                    const float seen = to_float(out[c]);
                    switch (c % 4) {
                        case 1:
                            EXPECT_EQ(seen, 0.0F);
                            EXPECT_FALSE(std::signbit(seen));
                            break;
                        case 2: EXPECT_TRUE(std::isnan(seen)); break;
                        default: EXPECT_EQ(seen, INFINITY);
                    }
                }
            };
            variant.function(type, type)(out.data(), rows, weights, 2, {columns, 0}, {});
            expect("sum");
            for (const std::vector<std::uint8_t>& ends : {std::vector<std::uint8_t>{2}, {1, 2}}) {
                variant.tree(type, type)(out.data(), rows, weights, ends, {columns, 0}, {});
                expect("tree");
            }
        }
    }
}

TEST(Reduce, SpecialValuesGoThrough) {
    expect_special_values<float>(ElementType::float32);
    expect_special_values<Bfloat16>(ElementType::bfloat16);
    expect_special_values<Half>(ElementType::half);
}

TEST(Reduce, ThePortableVariantIsAlwaysThereAndLast) {
    ASSERT_FALSE(reduce_variants().empty());
    EXPECT_EQ(reduce_variants().back().name, "portable");
}

}  // namespace
}  // namespace npushmem::moe
