// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/narrow_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/fakes/quantized_types.hpp"
#include "tests/unit/core/moe/typed_element.hpp"

namespace npushmem::moe {
namespace {

constexpr std::array types{NarrowType::e4m3, NarrowType::e5m2, NarrowType::int8};
constexpr std::array wide_types{ElementType::bfloat16, ElementType::half, ElementType::float32};

fakes::QuantizedType definition_of(NarrowType type) { return fakes::quantized_type(static_cast<int>(type)); }
double largest(NarrowType type) { return definition_of(type).largest; }
double value_of(NarrowType type, int pattern) { return fakes::value_of(definition_of(type), pattern); }
// True for the patterns of finite values. -128 is none: it has no counterpart.
bool is_number(NarrowType type, int pattern) { return std::abs(value_of(type, pattern)) <= largest(type); }

// The nearest pattern, by trying all; of two that are equally near the even one.
int nearest(NarrowType type, double value) {
    int best = 0;
    for (int pattern = 0; pattern < 256; ++pattern) {
        if (!is_number(type, pattern)) continue;
        const double distance = std::abs(value_of(type, pattern) - value);
        const double best_distance = std::abs(value_of(type, best) - value);
        if (distance < best_distance || (distance == best_distance && pattern % 2 == 0 && best % 2 != 0))
            best = pattern;
    }
    return best;
}

// A row of a type, with bytes behind both forms that must stay unchanged.
class Row {
public:
    Row(ElementType wide, std::size_t hidden, std::size_t block)
        : wide_(wide),
          layout_(hidden, block),
          in_(hidden * element_bytes(wide) + 8, std::byte{0x5A}),
          narrow_(layout_.row().value() / sizeof(float) + 2) {}

    void set(std::size_t column, float value) {
        write_element(wide_, in_.data() + column * element_bytes(wide_), value);
    }
    [[nodiscard]] float in(std::size_t column) const {
        return read_element(wide_, in_.data() + column * element_bytes(wide_));
    }
    [[nodiscard]] int pattern(std::size_t column) const { return std::to_integer<int>(bytes()[column]); }
    [[nodiscard]] float scale(std::size_t block) const { return narrow_[layout_.scales().value() / 4 + block]; }

    void quantize(const NarrowVariant& variant, NarrowType type) {
        std::fill(narrow_.begin(), narrow_.end(), -7.0F);
        variant.functions(type, wide_).quantize(layout_, in_.data(), reinterpret_cast<std::byte*>(narrow_.data()));
        ASSERT_EQ(narrow_[layout_.row().value() / 4], -7.0F);
        for (std::size_t i = layout_.hidden(); i < layout_.scales().value(); ++i) ASSERT_EQ(pattern(i), 0);
        for (std::size_t i = layout_.scales().value() / 4 + layout_.blocks(); i < layout_.row().value() / 4; ++i)
            ASSERT_EQ(narrow_[i], 0.0F);
    }
    std::vector<float> dequantized(const NarrowVariant& variant, NarrowType type) {
        std::vector<std::byte> out(in_.size(), std::byte{0x5A});
        variant.functions(type, wide_).dequantize(layout_, bytes(), out.data());
        EXPECT_EQ(out[layout_.hidden() * element_bytes(wide_)], std::byte{0x5A});
        std::vector<float> values;
        for (std::size_t c = 0; c < layout_.hidden(); ++c)
            values.push_back(read_element(wide_, out.data() + c * element_bytes(wide_)));
        return values;
    }
    [[nodiscard]] std::byte* bytes() { return reinterpret_cast<std::byte*>(narrow_.data()); }
    [[nodiscard]] const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(narrow_.data()); }
    void set_scale(std::size_t block, float value) { narrow_[layout_.scales().value() / 4 + block] = value; }

    // The documented scale of a block of finite elements.
    [[nodiscard]] float expected_scale(NarrowType type, std::size_t block) const {
        float magnitude = 0;
        for (std::size_t c = block * layout_.block(); c < std::min((block + 1) * layout_.block(), layout_.hidden());
             ++c)
            magnitude = std::max(magnitude, std::abs(in(c)));
        if (magnitude == 0) return 1.0F;
        return std::max(magnitude / static_cast<float>(largest(type)), 0x1p-126F);  // not for the largest floats
    }
    [[nodiscard]] const NarrowLayout& layout() const { return layout_; }

private:
    ElementType wide_;
    NarrowLayout layout_;
    std::vector<std::byte> in_;
    std::vector<float> narrow_;
};

// Calls visit(variant, type, wide) for all.
template <class Visit>
void for_all(const Visit& visit) {
    for (const NarrowVariant& variant : narrow_variants())
        for (const NarrowType type : types)
            for (const ElementType wide : wide_types) {
                SCOPED_TRACE(std::string(variant.name) + ' ' + std::string(name_of(type)) + " from " +
                             std::string(name_of(wide)));
                ASSERT_NO_FATAL_FAILURE(visit(variant, type, wide));
            }
}

void fill(Row& row, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (std::size_t c = 0; c < row.layout().hidden(); ++c) {
        const float magnitude = std::ldexp(1.0F, static_cast<int>(random() % 20) - 10);
        row.set(c, random() % 9 == 0 ? 0.0F : normal(random) * magnitude);
    }
}

TEST(NarrowLayout, ElementsThenScalesInMultiplesOf64Bytes) {
    EXPECT_EQ(NarrowLayout(7168, 0).row(), Bytes{7424});
    EXPECT_EQ(NarrowLayout(7168, 128).blocks(), 56U);
    EXPECT_EQ(NarrowLayout(7168, 1 << 24).row(), Bytes{7232});
    EXPECT_EQ(NarrowLayout(129, 0).blocks(), 2U);
    EXPECT_EQ(NarrowLayout(129, 0).scales(), Bytes{132});
    EXPECT_EQ(NarrowLayout(1, 0).row(), Bytes{64});
    EXPECT_EQ(NarrowLayout(7168, 0x7FFFFFFF).block(), 7168U);
    EXPECT_EQ(NarrowLayout(100, 0).block(), 100U);
}

TEST(NarrowRows, EveryElementIsTheNearestOne) {
    for_all([](const NarrowVariant& variant, NarrowType type, ElementType wide) {
        std::uint32_t seed = 1;
        for (const auto& [hidden, block] : {std::pair<std::size_t, std::size_t>{1, 0}, {7, 3}, {300, 0}, {515, 1000}}) {
            Row row(wide, hidden, block);
            fill(row, ++seed);
            ASSERT_NO_FATAL_FAILURE(row.quantize(variant, type));
            for (std::size_t c = 0; c < hidden; ++c) {
                const float scale = row.scale(c / row.layout().block());
                ASSERT_EQ(scale, row.expected_scale(type, c / row.layout().block()));
                const float scaled = row.in(c) * (1.0F / scale);
                const int expected = nearest(type, scaled);
                // A negative zero keeps its sign where the type has one.
                const bool zeros = expected == 0 && type != NarrowType::int8 && row.pattern(c) % 128 == 0;
                ASSERT_TRUE(row.pattern(c) == expected || zeros)
                    << "column " << c << ": " << row.in(c) << " became " << row.pattern(c) << ", not " << expected;
            }
        }
    });
}

// The stated bound, and for types other than float the rounding to them.
void expect_bound(Row& row, const NarrowVariant& variant, NarrowType type, ElementType wide) {
    const double unit = wide == ElementType::bfloat16 ? 0x1p-8 : wide == ElementType::half ? 0x1p-11 : 0;
    const double step = wide == ElementType::bfloat16 ? 0x1p-134 : wide == ElementType::half ? 0x1p-25 : 0;
    const std::vector<float> back = row.dequantized(variant, type);
    for (std::size_t c = 0; c < back.size(); ++c) {
        const double value = row.in(c);
        const double bound = fakes::error_bound(definition_of(type), value, row.scale(c / row.layout().block()));
        ASSERT_LE(std::abs(back[c] - value), bound + std::abs(back[c]) * unit + step)
            << "column " << c << ": " << value;
    }
}

TEST(NarrowRows, TheErrorHasTheStatedBound) {
    for_all([](const NarrowVariant& variant, NarrowType type, ElementType wide) {
        Row row(wide, 4096, 0);
        fill(row, 5);
        ASSERT_NO_FATAL_FAILURE(row.quantize(variant, type));
        ASSERT_NO_FATAL_FAILURE(expect_bound(row, variant, type, wide));
    });
}

// Their scale must not be rounded up to one whose product with the largest element is infinite.
TEST(NarrowRows, TheLargestNumbersStayFinite) {
    for_all([](const NarrowVariant& variant, NarrowType type, ElementType wide) {
        const float most = wide == ElementType::float32    ? std::numeric_limits<float>::max()
                           : wide == ElementType::bfloat16 ? 0x1.FEp127F
                                                           : 65504.0F;
        Row row(wide, 131, 0);
        for (std::size_t c = 0; c < 131; ++c) row.set(c, c % 3 == 0 ? most : c % 3 == 1 ? -most : most / 3);
        ASSERT_EQ(row.in(0), most);
        ASSERT_NO_FATAL_FAILURE(row.quantize(variant, type));
        ASSERT_NO_FATAL_FAILURE(expect_bound(row, variant, type, wide));
    });
}

// Every 4001st block of the floats' magnitudes, so that scales and elements round in many ways.
TEST(NarrowRows, TheErrorOfAnyFloatHasTheStatedBound) {
    for_all([](const NarrowVariant& variant, NarrowType type, ElementType wide) {
        if (wide != ElementType::float32) return;
        constexpr std::uint32_t infinity = 0x7F800000;
        Row row(wide, 128, 0);
        for (std::uint32_t bits = 1; bits < infinity; bits += 4001 * 128) {
            for (std::size_t c = 0; c < 128; ++c) {
                const auto lower = static_cast<std::uint32_t>(c) * 0x12345U;  // from 0.4 binades below on
                row.set(c, std::bit_cast<float>(bits > lower ? bits - lower : bits));
            }
            ASSERT_NO_FATAL_FAILURE(row.quantize(variant, type));
            ASSERT_NO_FATAL_FAILURE(expect_bound(row, variant, type, wide));
        }
    });
}

TEST(NarrowRows, EveryPatternHasTheValueOfItsDefinition) {
    for_all([](const NarrowVariant& variant, NarrowType type, ElementType wide) {
        if (wide != ElementType::float32) return;  // the others round
        Row row(wide, 256, 256);
        for (int pattern = 0; pattern < 256; ++pattern) row.bytes()[pattern] = std::byte(pattern);
        row.set_scale(0, 0.75F);
        const std::vector<float> values = row.dequantized(variant, type);
        for (int pattern = 0; pattern < 256; ++pattern) {
            const float seen = values[static_cast<std::size_t>(pattern)];
            if (std::isfinite(value_of(type, pattern))) {
                ASSERT_EQ(seen, static_cast<float>(value_of(type, pattern)) * 0.75F) << pattern;
                ASSERT_EQ(std::signbit(seen), pattern >= 128) << pattern;
            } else if (type == NarrowType::e5m2 && (pattern & 0x7F) == 0x7C) {
                ASSERT_EQ(seen, pattern < 128 ? HUGE_VALF : -HUGE_VALF);
            } else {
                ASSERT_TRUE(std::isnan(seen)) << pattern;
            }
        }
    });
}

// Values between two neighbours; the largest element makes the scale 1.
TEST(NarrowRows, RoundsToNearestEvenBetweenAllNeighbours) {
    for_all([](const NarrowVariant& variant, NarrowType type, ElementType wide) {
        if (wide != ElementType::float32) return;
        std::vector<double> numbers;
        for (int pattern = 0; pattern < 128; ++pattern)
            if (is_number(type, pattern)) numbers.push_back(value_of(type, pattern));
        std::vector<float> values{static_cast<float>(largest(type))};
        for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
            const auto middle = static_cast<float>((numbers[i] + numbers[i + 1]) / 2);
            for (const float value : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)})
                values.insert(values.end(), {value, -value});
        }
        Row row(wide, values.size(), values.size());
        for (std::size_t c = 0; c < values.size(); ++c) row.set(c, values[c]);
        ASSERT_NO_FATAL_FAILURE(row.quantize(variant, type));
        ASSERT_EQ(row.scale(0), 1.0F);
        for (std::size_t c = 0; c < values.size(); ++c)
            ASSERT_EQ(value_of(type, row.pattern(c)), value_of(type, nearest(type, values[c]))) << values[c];
    });
}

TEST(NarrowRows, KeepsZerosAndTheSmallestNumbers) {
    for_all([](const NarrowVariant& variant, NarrowType type, ElementType wide) {
        Row zeros(wide, 70, 0);
        for (std::size_t c = 0; c < 70; ++c) zeros.set(c, 0.0F);
        ASSERT_NO_FATAL_FAILURE(zeros.quantize(variant, type));
        EXPECT_EQ(zeros.scale(0), 1.0F);
        for (std::size_t c = 0; c < 70; ++c) ASSERT_EQ(zeros.pattern(c), 0);
        if (wide != ElementType::float32) return;
        Row tiny(wide, 70, 0);
        for (std::size_t c = 0; c < 70; ++c) tiny.set(c, c == 69 ? 0x1p-140F : 0.0F);
        ASSERT_NO_FATAL_FAILURE(tiny.quantize(variant, type));
        EXPECT_EQ(tiny.scale(0), 0x1p-126F);  // its reciprocal is finite
        EXPECT_EQ(tiny.pattern(0), 0);
        EXPECT_EQ(value_of(type, tiny.pattern(69)), value_of(type, nearest(type, 0x1p-14)));
    });
}

TEST(NarrowRows, MarksWhatIsNoFiniteNumber) {
    for_all([](const NarrowVariant& variant, NarrowType type, ElementType wide) {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        const std::array<float, 3> specials{infinity, -infinity, std::numeric_limits<float>::quiet_NaN()};
        for (const std::size_t at : {0U, 63U, 130U}) {  // in a vector, and in the rest of a block
            for (const float special : specials) {
                Row row(wide, 131, 0);
                for (std::size_t c = 0; c < 131; ++c) row.set(c, c == at ? special : 2.0F);
                ASSERT_NO_FATAL_FAILURE(row.quantize(variant, type));
                const std::vector<float> back = row.dequantized(variant, type);
                const bool keeps = type == NarrowType::e5m2 && std::isinf(special);
                EXPECT_TRUE(keeps ? back[at] == special : std::isnan(back[at])) << back[at];
                const std::size_t in_block = at == 130 ? 129 : 1;
                if (type == NarrowType::int8) {
                    EXPECT_TRUE(std::isnan(back[in_block]));
                    EXPECT_EQ(row.scale(at / 128 == 0 ? 1 : 0), 2.0F / 127);
                } else {
                    EXPECT_NEAR(back[in_block], 2.0F, 0.02F);
                }
            }
        }
    });
}

// NaNs with payloads too.
void fill_specials(Row& row, std::uint32_t seed) {
    fill(row, seed);
    constexpr std::array<std::uint32_t, 6> specials{0x7F800000, 0xFF800000, 0x7FC00000,
                                                    0x7FA12345, 0xFFF54321, 0x80000000};
    std::mt19937 random(seed);
    for (std::size_t c = 0; c < row.layout().hidden(); ++c)
        if (random() % 50 == 0) row.set(c, std::bit_cast<float>(specials[random() % specials.size()]));
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
    std::vector<std::uint32_t> bits;
    for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
    return bits;
}

TEST(NarrowRows, AllVariantsGiveTheSameBits) {
    for (const NarrowType type : types) {
        for (const ElementType wide : wide_types) {
            for (std::size_t hidden = 1; hidden < 300; hidden += hidden < 70 ? 1 : 37) {
                Row expected(wide, hidden, 40);
                fill_specials(expected, static_cast<std::uint32_t>(hidden));
                ASSERT_NO_FATAL_FAILURE(expected.quantize(narrow_variants().back(), type));
                for (const NarrowVariant& variant : narrow_variants()) {
                    Row row(wide, hidden, 40);
                    fill_specials(row, static_cast<std::uint32_t>(hidden));
                    ASSERT_NO_FATAL_FAILURE(row.quantize(variant, type));
                    ASSERT_EQ(std::memcmp(row.bytes(), expected.bytes(), row.layout().row().value()), 0)
                        << variant.name << ", hidden " << hidden;
                    ASSERT_EQ(bits_of(row.dequantized(variant, type)),
                              bits_of(expected.dequantized(narrow_variants().back(), type)));
                }
            }
        }
    }
}

// Rows of a sum, from different values, with elements behind the output that must stay unchanged.
void expect_sum(const NarrowVariant& variant, NarrowType type, ElementType wide, std::size_t hidden, std::size_t block,
                std::size_t count) {
    std::vector<Row> rows(count, Row(ElementType::float32, hidden, block));
    std::vector<std::vector<float>> values;
    std::vector<const void*> pointers;
    std::vector<float> weights;
    for (std::size_t i = 0; i < count; ++i) {
        fill(rows[i], static_cast<std::uint32_t>(hidden * 10 + i));
        rows[i].quantize(variant, type);
        values.push_back(rows[i].dequantized(narrow_variants().back(), type));
        pointers.push_back(rows[i].bytes());
        weights.push_back(0.3F * static_cast<float>(i) - 0.7F);
    }
    const std::size_t size = element_bytes(wide);
    std::vector<std::byte> out((hidden + 1) * size, std::byte{0x5A});
    const std::size_t shared = NarrowLayout(hidden, block).block();
    variant.functions(type, wide)
        .reduce(out.data(), pointers.data(), weights.data(), count, {hidden, shared}, pointers);
    for (std::size_t c = 0; c < hidden; ++c) {
        float sum = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const volatile float product = values[i][c] * weights[i];  // volatile: rounded
            sum += product;
        }
        std::vector<std::byte> expected(size);
        write_element(wide, expected.data(), sum);
        ASSERT_EQ(std::memcmp(out.data() + c * size, expected.data(), size), 0)
            << variant.name << ", hidden " << hidden << ", block " << block << ", column " << c;
    }
    ASSERT_EQ(out[hidden * size], std::byte{0x5A});
}

TEST(NarrowRows, SumsAreThoseOfTheDequantizedFloats) {
    for_all([](const NarrowVariant& variant, NarrowType type, ElementType wide) {
        for (const std::size_t hidden : {1, 5, 63, 64, 65, 300, 515})
            for (const std::size_t block : {0, 1, 32, 50, 64, 100, 192, 1000})
                for (const std::size_t count : {0, 1, 3})
                    ASSERT_NO_FATAL_FAILURE(expect_sum(variant, type, wide, hidden, block, count));
    });
}

}  // namespace
}  // namespace npushmem::moe
