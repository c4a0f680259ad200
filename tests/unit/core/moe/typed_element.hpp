// SPDX-License-Identifier: BSD-3-Clause
// Elements whose type is known at run time only.
#pragma once

#include <cstddef>
#include <cstring>

#include "core/moe/common/element.hpp"

namespace npushmem::moe {

inline std::size_t element_bytes(ElementType type) { return static_cast<std::size_t>(size_of(type)); }

template <class Element>
void put_element(std::byte* target, Element element) {
    std::memcpy(target, &element, sizeof element);
}
template <class Element>
float get_element(const std::byte* source) {
    Element element;
    std::memcpy(&element, source, sizeof element);
    return to_float(element);
}

inline void write_element(ElementType type, std::byte* target, float v) {
    if (type == ElementType::bfloat16) return put_element(target, from_float<Bfloat16>(v));
    if (type == ElementType::half) return put_element(target, from_float<Half>(v));
    put_element(target, v);
}
inline float read_element(ElementType type, const std::byte* source) {
    if (type == ElementType::bfloat16) return get_element<Bfloat16>(source);
    return type == ElementType::half ? get_element<Half>(source) : get_element<float>(source);
}

}  // namespace npushmem::moe
