// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/nontemporal_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>

namespace npushmem::moe {
namespace {

constexpr std::size_t page = 4096;

// Each struct has the same function: it copies `bytes` of each of `blocks` blocks, which begin `apart` bytes apart, one
// line of each in turn. It loads all lines of a turn before it stores the first.
struct With512Bits {
    template <std::size_t blocks>
    __attribute__((target("avx512f"))) static void copy(std::byte* target, const std::byte* source, std::size_t bytes,
                                                        std::size_t apart) {
        for (std::size_t done = 0; done < bytes; done += store_line) {
            __m512i lines[blocks];
#pragma GCC unroll 16
            for (std::size_t b = 0; b < blocks; ++b) lines[b] = _mm512_loadu_si512(source + b * apart + done);
#pragma GCC unroll 16
            for (std::size_t b = 0; b < blocks; ++b) {
                _mm512_stream_si512(reinterpret_cast<__m512i*>(target + b * apart + done), lines[b]);
            }
        }
    }
};

struct With256Bits {
    template <std::size_t blocks>
    __attribute__((target("avx"))) static void copy(std::byte* target, const std::byte* source, std::size_t bytes,
                                                    std::size_t apart) {
        for (std::size_t done = 0; done < bytes; done += store_line) {
            __m256i halves[2 * blocks];
#pragma GCC unroll 16
            for (std::size_t h = 0; h < 2 * blocks; ++h) {
                halves[h] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + h / 2 * apart + done) + h % 2);
            }
#pragma GCC unroll 16
            for (std::size_t h = 0; h < 2 * blocks; ++h) {
                _mm256_stream_si256(reinterpret_cast<__m256i*>(target + h / 2 * apart + done) + h % 2, halves[h]);
            }
        }
    }
};

struct With128Bits {
    template <std::size_t blocks>
    static void copy(std::byte* target, const std::byte* source, std::size_t bytes, std::size_t apart) {
        for (std::size_t done = 0; done < bytes; done += store_line) {
            __m128i parts[4 * blocks];
#pragma GCC unroll 16
            for (std::size_t p = 0; p < 4 * blocks; ++p) {
                parts[p] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + p / 4 * apart + done) + p % 4);
            }
#pragma GCC unroll 16
            for (std::size_t p = 0; p < 4 * blocks; ++p) {
                _mm_stream_si128(reinterpret_cast<__m128i*>(target + p / 4 * apart + done) + p % 4, parts[p]);
            }
        }
    }
};

// Copies whole lines in `blocks` equal blocks, and the lines that remain.
template <class Width, std::size_t blocks>
void copy_blocks(std::byte* target, const std::byte* source, std::size_t bytes) {
    const std::size_t each = bytes / store_line / blocks * store_line;
    const std::size_t done = blocks * each;
    Width::template copy<blocks>(target, source, each, each);
    Width::template copy<1>(target + done, source + done, bytes - done, 0);
}

// Measured on rows in memory: with 14 KB, four blocks of 3.5 KB take 0.85 to 0.93 of the time of two pages and the
// rest; two blocks are best for 7 KB, and one for 4 KB.
template <class Width>
void copy(std::byte* target, const std::byte* source, std::size_t bytes) {
    for (; bytes >= 4 * page; bytes -= 4 * page, target += 4 * page, source += 4 * page)
        Width::template copy<4>(target, source, page, page);
    if (bytes >= 2 * page) return copy_blocks<Width, 4>(target, source, bytes);
    if (bytes > page) return copy_blocks<Width, 2>(target, source, bytes);
    Width::template copy<1>(target, source, bytes, 0);
}

}  // namespace

StoreWidth widest_store() {
    if (__builtin_cpu_supports("avx512f")) return StoreWidth::bits_512;
    return __builtin_cpu_supports("avx") ? StoreWidth::bits_256 : StoreWidth::bits_128;
}

void nontemporal_lines(std::byte* target, const std::byte* source, std::size_t lines, StoreWidth width) {
    const std::size_t bytes = lines * store_line;
    switch (width) {
        case StoreWidth::bits_512: return copy<With512Bits>(target, source, bytes);
        case StoreWidth::bits_256: return copy<With256Bits>(target, source, bytes);
        case StoreWidth::bits_128: return copy<With128Bits>(target, source, bytes);
    }
}

}  // namespace npushmem::moe

#else

namespace npushmem::moe {

StoreWidth widest_store() { return StoreWidth::bits_128; }

void nontemporal_lines(std::byte* target, const std::byte* source, std::size_t lines, StoreWidth) {
    std::memcpy(target, source, lines * store_line);
}

}  // namespace npushmem::moe

#endif

namespace npushmem::moe {

void copy_nontemporal(std::byte* target, const std::byte* source, std::size_t bytes) {
    // Memory would read and merge a line that is written only in part, so the ends use ordinary copies.
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(target) % store_line;
    const std::size_t head = std::min(bytes, (store_line - beyond) % store_line);
    const std::size_t lines = (bytes - head) / store_line;
    std::memcpy(target, source, head);
    nontemporal_lines(target + head, source + head, lines, widest_store());
    const std::size_t done = head + lines * store_line;
    std::memcpy(target + done, source + done, bytes - done);
}

void nontemporal_fence() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

}  // namespace npushmem::moe
