// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/vector_ops.hpp"

#include <atomic>
#include <type_traits>

// Each loop is compiled twice; the loader picks the variant with wider vectors if the machine supports it. Both
// variants give the same bits, because the file is compiled without contraction of products and sums. Sanitizer builds
// use one variant: sanitizers cannot run that early. So do builds by clang, which knows no such variants of templates.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define NPUSHMEM_NPU_WIDE __attribute__((target_clones("default", "avx2")))
#else
#define NPUSHMEM_NPU_WIDE
#endif

namespace npushmem::npu::vector_ops {
namespace {

// The type in which the arithmetic of T is computed: unsigned for integers, which wrap; float for all others.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, std::int32_t>, std::uint32_t, float>;

template <class T>
Wide<T> widen(T value) {
    return static_cast<Wide<T>>(value);
}

template <class T>
T narrow(Wide<T> value) {
    return static_cast<T>(value);
}

template <class T>
T sum(T a, T b) {
    return narrow<T>(widen(a) + widen(b));
}

template <class T>
T difference(T a, T b) {
    return narrow<T>(widen(a) - widen(b));
}

template <class T>
T product(T a, T b) {
    return narrow<T>(widen(a) * widen(b));
}

}  // namespace

template <Number T>
NPUSHMEM_NPU_WIDE void add(T* target, const T* a, const T* b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) target[i] = sum(a[i], b[i]);
}

template <Number T>
NPUSHMEM_NPU_WIDE void subtract(T* target, const T* a, const T* b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) target[i] = difference(a[i], b[i]);
}

template <Number T>
NPUSHMEM_NPU_WIDE void multiply(T* target, const T* a, const T* b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) target[i] = product(a[i], b[i]);
}

template <Number T>
NPUSHMEM_NPU_WIDE void add_scalar(T* target, const T* source, T scalar, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) target[i] = sum(source[i], scalar);
}

template <Number T>
NPUSHMEM_NPU_WIDE void multiply_scalar(T* target, const T* source, T scalar, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) target[i] = product(source[i], scalar);
}

template <Number T>
NPUSHMEM_NPU_WIDE void multiply_add(T* target, const T* a, const T* b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) target[i] = sum(target[i], product(a[i], b[i]));
}

template <Number To, Number From>
NPUSHMEM_NPU_WIDE void axpy(To* target, const From* source, To scalar, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) target[i] = sum(target[i], product(scalar, convert<To>(source[i])));
}

template <Number To, Number From>
NPUSHMEM_NPU_WIDE void cast(To* target, const From* source, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) target[i] = convert<To>(source[i]);
}

template <Number T>
void atomic_accumulate(T* target, const T* source, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        T before;
        // Relaxed: a copy publishes nothing; the following signal or barrier does.
        __atomic_load(target + i, &before, __ATOMIC_RELAXED);
        T after = sum(before, source[i]);
        while (!__atomic_compare_exchange(target + i, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            after = sum(before, source[i]);
        }
    }
}

#define NPUSHMEM_NPU_VECTOR_OPS(T)                                   \
    template void add(T*, const T*, const T*, std::size_t);          \
    template void subtract(T*, const T*, const T*, std::size_t);     \
    template void multiply(T*, const T*, const T*, std::size_t);     \
    template void add_scalar(T*, const T*, T, std::size_t);          \
    template void multiply_scalar(T*, const T*, T, std::size_t);     \
    template void multiply_add(T*, const T*, const T*, std::size_t); \
    template void axpy(T*, const T*, T, std::size_t);                \
    template void atomic_accumulate(T*, const T*, std::size_t);      \
    template void cast(T*, const float*, std::size_t);               \
    template void cast(T*, const half*, std::size_t);                \
    template void cast(T*, const bfloat16*, std::size_t);            \
    template void cast(T*, const std::int32_t*, std::size_t);

NPUSHMEM_NPU_VECTOR_OPS(float)
NPUSHMEM_NPU_VECTOR_OPS(half)
NPUSHMEM_NPU_VECTOR_OPS(bfloat16)
NPUSHMEM_NPU_VECTOR_OPS(std::int32_t)
template void axpy(float*, const half*, float, std::size_t);
template void axpy(float*, const bfloat16*, float, std::size_t);

}  // namespace npushmem::npu::vector_ops
