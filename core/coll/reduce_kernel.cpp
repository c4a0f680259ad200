// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/reduce_kernel.hpp"

#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>

#include "npushmem/npu/bfloat16.hpp"
#include "npushmem/npu/half.hpp"

namespace npushmem::coll {

namespace {

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;

// Integers narrower than int are combined as int, then truncated to their width.
template <class T, class Function>
void each(void* into, const void* with, std::size_t count, Function function) {
    T* const a = static_cast<T*>(into);
    const T* const b = static_cast<const T*>(with);
    for (std::size_t i = 0; i < count; ++i) a[i] = static_cast<T>(function(a[i], b[i]));
}

// Signed sums and products wrap around, like those of the atomics.
template <class T>
auto wrapping(T value) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<std::conditional_t<(sizeof(T) < sizeof(unsigned)), unsigned, std::make_unsigned_t<T>>>(
            static_cast<std::make_unsigned_t<T>>(value));
    else
        return value;
}

template <class T>
std::complex<T> product(const std::complex<T>& a, const std::complex<T>& b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T>
ReduceKernel arithmetic(ReduceOperation operation) {
    if (operation == ReduceOperation::sum)
        return [](void* into, const void* with, std::size_t count) {
            each<T>(into, with, count, [](T a, T b) { return wrapping(a) + wrapping(b); });
        };
    if (operation == ReduceOperation::prod)
        return [](void* into, const void* with, std::size_t count) {
            if constexpr (is_complex<T>)
                each<T>(into, with, count, [](T a, T b) { return product(a, b); });
            else
                each<T>(into, with, count, [](T a, T b) { return wrapping(a) * wrapping(b); });
        };
    return nullptr;
}

template <class T>
bool is_nan(T value) {
    if constexpr (std::is_floating_point_v<T>)
        return std::isnan(value);
    else
        return false;
}

// A NaN is the result, wherever it is among the operands.
template <class T>
T larger(T a, T b) {
    return a < b || is_nan(b) ? b : a;
}
template <class T>
T smaller(T a, T b) {
    return b < a || is_nan(b) ? b : a;
}

template <class T>
ReduceKernel ordered(ReduceOperation operation) {
    if (operation == ReduceOperation::max)
        return [](void* into, const void* with, std::size_t count) { each<T>(into, with, count, larger<T>); };
    if (operation == ReduceOperation::min)
        return [](void* into, const void* with, std::size_t count) { each<T>(into, with, count, smaller<T>); };
    return arithmetic<T>(operation);
}

template <class T>
ReduceKernel integral(ReduceOperation operation) {
    switch (operation) {
        case ReduceOperation::and_:
            return [](void* into, const void* with, std::size_t count) {
                each<T>(into, with, count, [](T a, T b) { return a & b; });
            };
        case ReduceOperation::or_:
            return [](void* into, const void* with, std::size_t count) {
                each<T>(into, with, count, [](T a, T b) { return a | b; });
            };
        case ReduceOperation::xor_:
            return [](void* into, const void* with, std::size_t count) {
                each<T>(into, with, count, [](T a, T b) { return a ^ b; });
            };
        default: return ordered<T>(operation);
    }
}

// Numbers of 16 bits are combined as float.
template <class T, class Function>
void each_as_float(void* into, const void* with, std::size_t count, Function function) {
    float* const a = static_cast<float*>(into);
    const T* const b = static_cast<const T*>(with);
    for (std::size_t i = 0; i < count; ++i) a[i] = function(a[i], static_cast<float>(b[i]));
}

template <class T>
ReduceKernel as_float(ReduceOperation operation) {
    switch (operation) {
        case ReduceOperation::max:
            return [](void* into, const void* with, std::size_t count) {
                each_as_float<T>(into, with, count, larger<float>);
            };
        case ReduceOperation::min:
            return [](void* into, const void* with, std::size_t count) {
                each_as_float<T>(into, with, count, smaller<float>);
            };
        case ReduceOperation::sum:
            return [](void* into, const void* with, std::size_t count) {
                each_as_float<T>(into, with, count, [](float a, float b) { return a + b; });
            };
        case ReduceOperation::prod:
            return [](void* into, const void* with, std::size_t count) {
                each_as_float<T>(into, with, count, [](float a, float b) { return a * b; });
            };
        default: return nullptr;
    }
}

template <class T>
void to_float(void* accumulators, const void* elements, std::size_t count) {
    float* const to = static_cast<float*>(accumulators);
    const T* const from = static_cast<const T*>(elements);
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

template <class T>
void from_float(void* elements, const void* accumulators, std::size_t count) {
    T* const to = static_cast<T*>(elements);
    const float* const from = static_cast<const float*>(accumulators);
    for (std::size_t i = 0; i < count; ++i) to[i] = T(from[i]);
}

}  // namespace

Reduction::Reduction(ReduceOperation operation, ReduceElement element)
    : kernel(reduce_kernel_of(operation, element)), size(element_bytes(element)), accumulator_size(size) {
    if (element == ReduceElement::f16) {
        widen = to_float<npu::half>;
        narrow = from_float<npu::half>;
    } else if (element == ReduceElement::bf16) {
        widen = to_float<npu::bfloat16>;
        narrow = from_float<npu::bfloat16>;
    }
    if (widens()) accumulator_size = sizeof(float);
}

void Reduction::begin(void* accumulators, const void* first, std::size_t count) const {
    if (widens())
        widen(accumulators, first, count);
    else
        std::memcpy(accumulators, first, count * size);
}

void Reduction::finish(void* elements, const void* accumulators, std::size_t count) const {
    if (widens())
        narrow(elements, accumulators, count);
    else if (elements != accumulators)
        std::memcpy(elements, accumulators, count * size);
}

ReduceKernel reduce_kernel_of(ReduceOperation operation, ReduceElement element) {
    switch (element) {
        case ReduceElement::i8: return integral<std::int8_t>(operation);
        case ReduceElement::i16: return integral<std::int16_t>(operation);
        case ReduceElement::i32: return integral<std::int32_t>(operation);
        case ReduceElement::i64: return integral<std::int64_t>(operation);
        case ReduceElement::u8: return integral<std::uint8_t>(operation);
        case ReduceElement::u16: return integral<std::uint16_t>(operation);
        case ReduceElement::u32: return integral<std::uint32_t>(operation);
        case ReduceElement::u64: return integral<std::uint64_t>(operation);
        case ReduceElement::f16: return as_float<npu::half>(operation);
        case ReduceElement::bf16: return as_float<npu::bfloat16>(operation);
        case ReduceElement::f32: return ordered<float>(operation);
        case ReduceElement::f64: return ordered<double>(operation);
        case ReduceElement::f80: return ordered<long double>(operation);
        case ReduceElement::c32: return arithmetic<std::complex<float>>(operation);
        case ReduceElement::c64: return arithmetic<std::complex<double>>(operation);
    }
    return nullptr;
}

std::size_t element_bytes(ReduceElement element) {
    switch (element) {
        case ReduceElement::i8:
        case ReduceElement::u8: return 1;
        case ReduceElement::i16:
        case ReduceElement::u16:
        case ReduceElement::f16:
        case ReduceElement::bf16: return 2;
        case ReduceElement::i32:
        case ReduceElement::u32:
        case ReduceElement::f32: return 4;
        case ReduceElement::f80:
        case ReduceElement::c64: return 16;
        default: return 8;
    }
}

}  // namespace npushmem::coll
