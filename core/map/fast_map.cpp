// SPDX-License-Identifier: BSD-3-Clause
#include "core/map/fast_map.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace npushmem {

namespace {

void copy_by_memcpy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#if defined(__x86_64__)

// Copies a cache line per instruction. Loads precede stores within each four lines: a store whose address differs from
// a load's by a multiple of 4 KiB then does not delay the load.
__attribute__((target("avx512f"), always_inline)) inline void copy_four_lines(std::byte* to, const std::byte* from) {
    const __m512i a = _mm512_loadu_si512(from);
    const __m512i b = _mm512_loadu_si512(from + 64);
    const __m512i c = _mm512_loadu_si512(from + 128);
    const __m512i d = _mm512_loadu_si512(from + 192);
    _mm512_storeu_si512(to, a);
    _mm512_storeu_si512(to + 64, b);
    _mm512_storeu_si512(to + 128, c);
    _mm512_storeu_si512(to + 192, d);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;  // the sanitizer does not see the accesses of an instruction for strings
#else
constexpr bool is_sanitized = false;
#endif

void copy_by_string(void* to, const void* from, std::size_t bytes) {
    const auto differing = reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
    constexpr std::uintptr_t place_in_line = 63;
    if (is_sanitized || (differing & place_in_line) != 0) return copy_by_memcpy(to, from, bytes);
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

// The last step ends at the end of the block and may copy bytes again.
__attribute__((target("avx512f"))) void copy_block(void* to, const void* from, std::size_t bytes) {
    if (bytes > max_block_copy) return copy_by_string(to, from, bytes);
    auto* target = static_cast<std::byte*>(to);
    const auto* source = static_cast<const std::byte*>(from);
    constexpr std::size_t step = 256;
    std::byte* const last = target + bytes - step;
    for (; target < last; target += step, source += step) copy_four_lines(target, source);
    copy_four_lines(last, static_cast<const std::byte*>(from) + bytes - step);
}

// CPUs with these features run 512-bit moves at full clock; on earlier ones they slow down all later code.
bool has_full_speed_lines() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vbmi2");
}

#endif

}  // namespace

BlockCopy choose_block_copy() {
#if defined(__x86_64__)
    if (has_full_speed_lines()) return copy_block;
#endif
    return copy_by_memcpy;
}

void copy_large(void* to, const void* from, std::size_t bytes) {
    static const BlockCopy chosen = choose_block_copy();
    (suits_block_copy(bytes) ? chosen : copy_by_memcpy)(to, from, bytes);
}

}  // namespace npushmem
