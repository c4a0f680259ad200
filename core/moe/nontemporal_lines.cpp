#include "core/moe/nontemporal_lines.hpp"

#if defined(__SSE2__)
#include <immintrin.h>

namespace npushmem::moe {
namespace {

constexpr std::size_t page = 4096;

// Each has the same function: `bytes` of every one of `blocks` blocks that begin a page apart, line by line in turn.
// All lines of a turn are loaded before the first is stored.
struct With512Bits {
    template <std::size_t blocks>
    __attribute__((target("avx512f"))) static void copy(std::byte* target, const std::byte* source, std::size_t bytes) {
        for (std::size_t done = 0; done < bytes; done += store_line) {
            __m512i lines[blocks];
#pragma GCC unroll 16
            for (std::size_t b = 0; b < blocks; ++b) lines[b] = _mm512_loadu_si512(source + b * page + done);
#pragma GCC unroll 16
            for (std::size_t b = 0; b < blocks; ++b) {
                _mm512_stream_si512(reinterpret_cast<__m512i*>(target + b * page + done), lines[b]);
            }
        }
    }
};

struct With256Bits {
    template <std::size_t blocks>
    __attribute__((target("avx"))) static void copy(std::byte* target, const std::byte* source, std::size_t bytes) {
        for (std::size_t done = 0; done < bytes; done += store_line) {
            __m256i halves[2 * blocks];
#pragma GCC unroll 16
            for (std::size_t h = 0; h < 2 * blocks; ++h) {
                halves[h] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + h / 2 * page + done) + h % 2);
            }
#pragma GCC unroll 16
            for (std::size_t h = 0; h < 2 * blocks; ++h) {
                _mm256_stream_si256(reinterpret_cast<__m256i*>(target + h / 2 * page + done) + h % 2, halves[h]);
            }
        }
    }
};

struct With128Bits {
    template <std::size_t blocks>
    static void copy(std::byte* target, const std::byte* source, std::size_t bytes) {
        for (std::size_t done = 0; done < bytes; done += store_line) {
            __m128i parts[4 * blocks];
#pragma GCC unroll 16
            for (std::size_t p = 0; p < 4 * blocks; ++p) {
                parts[p] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + p / 4 * page + done) + p % 4);
            }
#pragma GCC unroll 16
            for (std::size_t p = 0; p < 4 * blocks; ++p) {
                _mm_stream_si128(reinterpret_cast<__m128i*>(target + p / 4 * page + done) + p % 4, parts[p]);
            }
        }
    }
};

// As many times `blocks` pages as there are. Returns the bytes that are done.
template <class Width, std::size_t blocks>
std::size_t copy_pages(std::byte* target, const std::byte* source, std::size_t bytes) {
    std::size_t done = 0;
    for (; bytes - done >= blocks * page; done += blocks * page) {
        Width::template copy<blocks>(target + done, source + done, page);
    }
    return done;
}

template <class Width>
void copy(std::byte* target, const std::byte* source, std::size_t bytes) {
    std::size_t done = copy_pages<Width, 4>(target, source, bytes);
    done += copy_pages<Width, 2>(target + done, source + done, bytes - done);
    Width::template copy<1>(target + done, source + done, bytes - done);
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
#include <cstring>

namespace npushmem::moe {

StoreWidth widest_store() { return StoreWidth::bits_128; }

void nontemporal_lines(std::byte* target, const std::byte* source, std::size_t lines, StoreWidth) {
    std::memcpy(target, source, lines * store_line);
}

}  // namespace npushmem::moe

#endif
