// Rows of a payload that follows from a seed, in the element type of the case.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/moe/element.hpp"
#include "core/moe/payload.hpp"

namespace npushmem::perf {

// Calls visit with a value of the element type.
template <class Visit>
auto with_type(moe::ElementType type, const Visit& visit) {
    if (type == moe::ElementType::half) return visit(moe::Half{});
    if (type == moe::ElementType::float32) return visit(float{});
    return visit(moe::Bfloat16{});
}

template <class Element>
void fill_row(std::byte* row, std::uint64_t seed, std::int64_t columns) {
    auto* elements = reinterpret_cast<Element*>(row);
    for (std::int64_t c = 0; c < columns; ++c) {
        elements[c] = moe::from_float<Element>(moe::random_value(seed, static_cast<std::uint64_t>(c)));
    }
}

}  // namespace npushmem::perf
