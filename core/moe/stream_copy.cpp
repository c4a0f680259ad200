#include "core/moe/stream_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace npushmem::moe {

#if defined(__SSE2__)
namespace {

constexpr std::size_t line = 64;

// `target` on a line's boundary, `lines` whole lines.
void copy_lines(std::byte* target, const std::byte* source, std::size_t lines) {
    for (; lines > 0; --lines, target += line, source += line) {
        const auto* in = reinterpret_cast<const __m128i*>(source);
        auto* out = reinterpret_cast<__m128i*>(target);
        const __m128i a = _mm_loadu_si128(in);
        const __m128i b = _mm_loadu_si128(in + 1);
        const __m128i c = _mm_loadu_si128(in + 2);
        const __m128i d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
}

}  // namespace

void copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes) {
    // A line written only in part would be read and merged by the memory: the ends go the ordinary way.
    const std::size_t head = std::min(bytes, (line - reinterpret_cast<std::uintptr_t>(target) % line) % line);
    const std::size_t lines = (bytes - head) / line;
    std::memcpy(target, source, head);
    copy_lines(target + head, source + head, lines);
    const std::size_t done = head + lines * line;
    std::memcpy(target + done, source + done, bytes - done);
}

void streaming_fence() { _mm_sfence(); }

#else

void copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes) {
    std::memcpy(target, source, bytes);
}

void streaming_fence() {}

#endif

}  // namespace npushmem::moe
