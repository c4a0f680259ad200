// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/gradients.hpp"

#include <array>

namespace npushmem::moe {

RowGradients::RowGradients(ElementType type, std::size_t hidden)
    : shape_{hidden, 0},
      scale_(best_reduce(type, type)),
      widen_(best_reduce(type, ElementType::float32)),
      y_(hidden),
      gradient_(hidden) {}

void RowGradients::scale(void* target, const void* gradient, float weight) const {
    scale_(target, &gradient, &weight, 1, shape_, {});
}

float RowGradients::product(const void* y, const void* gradient) {
    constexpr float one = 1;
    widen_(y_.data(), &y, &one, 1, shape_, {});
    widen_(gradient_.data(), &gradient, &one, 1, shape_, {});
    constexpr std::size_t lanes = 8;
    std::array<double, lanes> sums{};
    const auto add = [&](std::size_t lane, std::size_t column) {
        sums[lane] += static_cast<double>(y_[column]) * static_cast<double>(gradient_[column]);
    };
    std::size_t column = 0;
    for (; column + lanes <= shape_.columns; column += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) add(lane, column + lane);
    for (; column < shape_.columns; ++column) add(column % lanes, column);
    for (std::size_t half = lanes / 2; half > 0; half /= 2)
        for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    return static_cast<float>(sums[0]);
}

}  // namespace npushmem::moe
