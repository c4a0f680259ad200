// Memory of this process alone that is aligned like symmetric memory, to a page.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace npushmem::perf {

struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
};
using PageMemory = std::unique_ptr<std::byte[], FreeMemory>;

// Filled, so that every page is touched before anything is timed. Throws std::bad_alloc.
PageMemory page_memory(std::size_t bytes, std::byte filling = std::byte{0});

}  // namespace npushmem::perf
