#include "core/moe/stream_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/moe/stream_lines.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace npushmem::moe {

void copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes) {
    // A line written only in part would be read and merged by the memory: the ends go the ordinary way.
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(target) % stream_line;
    const std::size_t head = std::min(bytes, (stream_line - beyond) % stream_line);
    const std::size_t lines = (bytes - head) / stream_line;
    std::memcpy(target, source, head);
    stream_lines(target + head, source + head, lines, widest_stream());
    const std::size_t done = head + lines * stream_line;
    std::memcpy(target + done, source + done, bytes - done);
}

void streaming_fence() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

}  // namespace npushmem::moe
