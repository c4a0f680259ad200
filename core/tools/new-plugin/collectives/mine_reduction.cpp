// SPDX-License-Identifier: BSD-3-Clause
#include "mine_reduction.hpp"

#include <type_traits>

namespace mine_plugin {

namespace {

// The sum of a number and a NaN, which is in no order, is NaN.
template <class T>
T of_floats(std::uint32_t operation, T a, T b) {
    switch (operation) {
        case NPUSHMEM_COLL_MAX: return a <= b ? b : b <= a ? a : a + b;
        case NPUSHMEM_COLL_MIN: return a <= b ? a : b <= a ? b : a + b;
        case NPUSHMEM_COLL_SUM: return a + b;
        default: return a * b;
    }
}

// Sums and products of unsigned numbers wrap around, and have the bits of those of signed ones.
template <class T>
T of_integers(std::uint32_t operation, T a, T b) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    switch (operation) {
        case NPUSHMEM_COLL_AND: return static_cast<T>(x & y);
        case NPUSHMEM_COLL_OR: return static_cast<T>(x | y);
        case NPUSHMEM_COLL_XOR: return static_cast<T>(x ^ y);
        case NPUSHMEM_COLL_MAX: return a < b ? b : a;
        case NPUSHMEM_COLL_MIN: return b < a ? b : a;
        case NPUSHMEM_COLL_SUM: return static_cast<T>(x + y);
        default: return static_cast<T>(x * y);
    }
}

template <class T>
void combine_as(std::uint32_t operation, void* into, const void* with, std::size_t count) {
    T* const a = static_cast<T*>(into);
    const T* const b = static_cast<const T*>(with);
    for (std::size_t i = 0; i < count; ++i) {
        if constexpr (std::is_floating_point_v<T>)
            a[i] = of_floats(operation, a[i], b[i]);
        else
            a[i] = of_integers(operation, a[i], b[i]);
    }
}

constexpr std::uint64_t integers = (1U << NPUSHMEM_COLL_F16) - 1;
constexpr std::uint64_t floats = 1U << NPUSHMEM_COLL_F32 | 1U << NPUSHMEM_COLL_F64;

}  // namespace

std::uint64_t types_of(std::uint32_t operation) {
    if (operation > NPUSHMEM_COLL_PROD) return 0;
    return operation <= NPUSHMEM_COLL_XOR ? integers : integers | floats;
}

std::size_t bytes_of(std::uint32_t type) {
    if (type < NPUSHMEM_COLL_F16) return std::size_t{1} << type % 4;
    return type == NPUSHMEM_COLL_F32 ? sizeof(float) : sizeof(double);
}

void combine(std::uint32_t operation, std::uint32_t type, void* into, const void* with, std::size_t count) {
    switch (type) {
        case NPUSHMEM_COLL_I8: return combine_as<std::int8_t>(operation, into, with, count);
        case NPUSHMEM_COLL_I16: return combine_as<std::int16_t>(operation, into, with, count);
        case NPUSHMEM_COLL_I32: return combine_as<std::int32_t>(operation, into, with, count);
        case NPUSHMEM_COLL_I64: return combine_as<std::int64_t>(operation, into, with, count);
        case NPUSHMEM_COLL_U8: return combine_as<std::uint8_t>(operation, into, with, count);
        case NPUSHMEM_COLL_U16: return combine_as<std::uint16_t>(operation, into, with, count);
        case NPUSHMEM_COLL_U32: return combine_as<std::uint32_t>(operation, into, with, count);
        case NPUSHMEM_COLL_U64: return combine_as<std::uint64_t>(operation, into, with, count);
        case NPUSHMEM_COLL_F32: return combine_as<float>(operation, into, with, count);
        default: return combine_as<double>(operation, into, with, count);
    }
}

}  // namespace mine_plugin
