// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/gradients.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/unit/core/moe/typed_element.hpp"

namespace npushmem::moe {
namespace {

struct TwoRows {
    TwoRows(ElementType type, std::size_t columns, std::uint32_t seed)
        : type(type), y(bytes(columns)), g(bytes(columns)) {
        std::mt19937 random(seed);
        std::normal_distribution<float> value;
        for (std::size_t c = 0; c < columns; ++c) {
            write_element(type, y.data() + c * element_bytes(type), value(random));
            write_element(type, g.data() + c * element_bytes(type), value(random) * 1e-3F);
        }
    }
    [[nodiscard]] std::size_t bytes(std::size_t columns) const { return columns * element_bytes(type); }
    [[nodiscard]] float at(const std::vector<std::byte>& row, std::size_t c) const {
        return read_element(type, row.data() + c * element_bytes(type));
    }

    ElementType type;
    std::vector<std::byte> y;
    std::vector<std::byte> g;
};

// Of the documented tree.
float reference(const TwoRows& rows, std::size_t columns) {
    std::array<double, 8> sums{};
    for (std::size_t c = 0; c < columns; ++c)
        sums[c % 8] += static_cast<double>(rows.at(rows.y, c)) * static_cast<double>(rows.at(rows.g, c));
    const double low = (sums[0] + sums[4]) + (sums[2] + sums[6]);
    const double high = (sums[1] + sums[5]) + (sums[3] + sums[7]);
    return static_cast<float>(low + high);
}

constexpr std::array row_types{ElementType::bfloat16, ElementType::half, ElementType::float32};

TEST(RowGradients, TheProductIsThatOfTheDocumentedTree) {
    for (const ElementType type : row_types) {
        for (const std::size_t columns : {1U, 7U, 8U, 9U, 100U, 1023U, 7168U}) {
            const TwoRows rows(type, columns, static_cast<std::uint32_t>(columns));
            RowGradients gradients(type, columns);
            EXPECT_EQ(gradients.product(rows.y.data(), rows.g.data()), reference(rows, columns)) << columns;
        }
    }
}

TEST(RowGradients, TheRowIsScaledInFloatAndRoundedOnce) {
    for (const ElementType type : row_types) {
        const TwoRows rows(type, 133, 5);
        std::vector<std::byte> scaled(rows.g.size());
        std::vector<std::byte> expected(rows.g.size());
        const RowGradients gradients(type, 133);
        gradients.scale(scaled.data(), rows.g.data(), -0.3F);
        for (std::size_t c = 0; c < 133; ++c)
            write_element(type, expected.data() + c * element_bytes(type), 0 + -0.3F * rows.at(rows.g, c));
        EXPECT_EQ(scaled, expected);
    }
}

TEST(RowGradients, InfinitiesAndNansArrive) {
    TwoRows rows(ElementType::float32, 16, 1);
    write_element(ElementType::float32, rows.y.data() + 36, HUGE_VALF);
    RowGradients gradients(ElementType::float32, 16);
    EXPECT_TRUE(std::isinf(gradients.product(rows.y.data(), rows.g.data())));
    write_element(ElementType::float32, rows.g.data() + 36, 0.0F);
    EXPECT_TRUE(std::isnan(gradients.product(rows.y.data(), rows.g.data())));
}

}  // namespace
}  // namespace npushmem::moe
