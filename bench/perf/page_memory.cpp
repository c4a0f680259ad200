#include "bench/perf/page_memory.hpp"

#include <cstring>
#include <new>

namespace npushmem::perf {

PageMemory page_memory(std::size_t bytes, std::byte filling) {
    constexpr std::size_t page = 4096;
    const std::size_t all = (bytes / page + 1) * page;
    PageMemory memory(static_cast<std::byte*>(std::aligned_alloc(page, all)));
    if (!memory) throw std::bad_alloc();
    std::memset(memory.get(), std::to_integer<int>(filling), all);
    return memory;
}

}  // namespace npushmem::perf
