#include "core/coll/kernel.hpp"

#include <complex>
#include <type_traits>

namespace npushmem::coll {

namespace {

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;

// Integers narrower than int are combined as int, and come back modulo their width.
template <class T, class Function>
void each(void* into, const void* with, std::size_t count, Function function) {
    T* const a = static_cast<T*>(into);
    const T* const b = static_cast<const T*>(with);
    for (std::size_t i = 0; i < count; ++i) a[i] = static_cast<T>(function(a[i], b[i]));
}

// Signed sums and products wrap around, as those of the atomics do.
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
Kernel arithmetic(Operation operation) {
    if (operation == Operation::sum)
        return [](void* into, const void* with, std::size_t count) {
            each<T>(into, with, count, [](T a, T b) { return wrapping(a) + wrapping(b); });
        };
    if (operation == Operation::prod)
        return [](void* into, const void* with, std::size_t count) {
            if constexpr (is_complex<T>)
                each<T>(into, with, count, [](T a, T b) { return product(a, b); });
            else
                each<T>(into, with, count, [](T a, T b) { return wrapping(a) * wrapping(b); });
        };
    return nullptr;
}

template <class T>
Kernel ordered(Operation operation) {
    if (operation == Operation::max)
        return [](void* into, const void* with, std::size_t count) {
            each<T>(into, with, count, [](T a, T b) { return a < b ? b : a; });
        };
    if (operation == Operation::min)
        return [](void* into, const void* with, std::size_t count) {
            each<T>(into, with, count, [](T a, T b) { return b < a ? b : a; });
        };
    return arithmetic<T>(operation);
}

template <class T>
Kernel integral(Operation operation) {
    switch (operation) {
        case Operation::and_:
            return [](void* into, const void* with, std::size_t count) {
                each<T>(into, with, count, [](T a, T b) { return a & b; });
            };
        case Operation::or_:
            return [](void* into, const void* with, std::size_t count) {
                each<T>(into, with, count, [](T a, T b) { return a | b; });
            };
        case Operation::xor_:
            return [](void* into, const void* with, std::size_t count) {
                each<T>(into, with, count, [](T a, T b) { return a ^ b; });
            };
        default: return ordered<T>(operation);
    }
}

}  // namespace

Kernel kernel_of(Operation operation, Element element) {
    switch (element) {
        case Element::i8: return integral<std::int8_t>(operation);
        case Element::i16: return integral<std::int16_t>(operation);
        case Element::i32: return integral<std::int32_t>(operation);
        case Element::i64: return integral<std::int64_t>(operation);
        case Element::u8: return integral<std::uint8_t>(operation);
        case Element::u16: return integral<std::uint16_t>(operation);
        case Element::u32: return integral<std::uint32_t>(operation);
        case Element::u64: return integral<std::uint64_t>(operation);
        case Element::f32: return ordered<float>(operation);
        case Element::f64: return ordered<double>(operation);
        case Element::f80: return ordered<long double>(operation);
        case Element::c32: return arithmetic<std::complex<float>>(operation);
        case Element::c64: return arithmetic<std::complex<double>>(operation);
    }
    return nullptr;
}

std::size_t bytes_of(Element element) {
    switch (element) {
        case Element::i8:
        case Element::u8: return 1;
        case Element::i16:
        case Element::u16: return 2;
        case Element::i32:
        case Element::u32:
        case Element::f32: return 4;
        case Element::f80:
        case Element::c64: return 16;
        default: return 8;
    }
}

}  // namespace npushmem::coll
