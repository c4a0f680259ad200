#include "core/moe/nontemporal_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/moe/nontemporal_lines.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace npushmem::moe {

void copy_nontemporal(std::byte* target, const std::byte* source, std::size_t bytes) {
    // A line written only in part would be read and merged by the memory: the ends go the ordinary way.
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
